package debug

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRegistryAnswers(t *testing.T) {
	r := NewRegistry("/debug/controllers/")
	r.Set("b", Skipped, "its API is not served")
	r.Set("a", Started, "")
	r.Handle("a", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { _, _ = io.WriteString(w, "a at "+req.URL.Path) }))
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/debug/controllers/":        {200, `"name": "a"`},
		"/debug/controllers/a":       {200, "a at /debug/controllers/a"},
		"/debug/controllers/a/graph": {200, "a at /debug/controllers/a/graph"},
		"/debug/controllers/b":       {200, "its API is not served"},
		"/debug/controllers/b/graph": {404, "not found"},
		"/debug/controllers/c":       {404, "not found"},
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.body) {
			t.Errorf("%s: %d %s, want %d %s", path, w.Code, w.Body, want.status, want.body)
		}
	}
	if list := r.List(); len(list) != 2 || list[0].Name != "a" {
		t.Errorf("list %v", list)
	}
}

func TestAPausedControllerIsListedAsSuch(t *testing.T) {
	r := NewRegistry("/debug/controllers/")
	r.Set("a", Started, "")
	r.Set("b", Started, "")
	r.PausedBy(func(name string) string { return strings.Repeat("paused by jane", strings.Count(name, "b")) })
	if a, _ := r.Find("a"); a.PausedBy != "" {
		t.Errorf("a: %+v", a)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", "/debug/controllers/", nil))
	if strings.Count(w.Body.String(), `"paused": "paused by jane"`) != 1 {
		t.Errorf("the list says %s", w.Body)
	}
	if none, _ := r.Find("none of b"); none.PausedBy != "" {
		t.Errorf("of none: %+v", none)
	}
}
