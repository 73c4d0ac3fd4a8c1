package why

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func get(w *World, accept, question string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/debug/why?"+question, nil)
	req.Header.Set("Accept", accept)
	w.ServeHTTP(rec, req)
	return rec
}

func TestBrowsersGetAPageAndOthersJSON(t *testing.T) {
	w := newWorld(t, nil, rollout(2, 2, 2)...)
	for accept, want := range map[string]string{
		browser: "text/html; charset=utf-8", "text/html": "text/html; charset=utf-8",
		"": "application/json", "*/*": "application/json", "application/json": "application/json",
		"application/json, */*": "application/json", "text/html;q=0.5, application/json": "application/json",
		"text/plain": "application/json", "nonsense": "application/json",
	} {
		rec := get(w, accept, "kind=deploy&namespace=default&name=web")
		if got := rec.Header().Get("Content-Type"); rec.Code != http.StatusOK || got != want {
			t.Errorf("Accept %q: %d %s, want %s", accept, rec.Code, got, want)
		}
		if rec.Header().Get("Vary") != "Accept" || rec.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("Accept %q: headers %v", accept, rec.Header())
		}
	}
}

func TestThePageShowsTheChain(t *testing.T) {
	w := newWorld(t, map[string]loop{"replicaset-controller": {"default/web-1": {Failures: 4, LastError: "create pods: exceeded quota", NextTry: noon.Add(8 * time.Second),
		Decisions: []act.Decision{{At: noon.Add(-time.Second), Why: "3 pods missing of 5", Steps: []string{"create Pod [web-1-*]"}, Became: []string{"create Pod: refused"}}}}}}, rollout(50, 50, 48)...)
	body := get(w, browser, "kind=deploy&namespace=default&name=web").Body.String()
	for _, says := range []string{
		`<title>Deployment web is blocked</title>`, `class="answer blocked"`, `create pods: exceeded quota`,
		`<a href="why?kind=ReplicaSet&amp;name=web-1&amp;namespace=default">web-1</a>`,
		`<a href="controllers/replicaset-controller?key=default%2Fweb-1">`, `2030-01-01 12:00:08Z, in 8s`, `3 pods missing of 5`,
		`and 30 more of kind Pod, the worst of them complete`, `kubectl kcm why deployment/web -n default`,
		`<option value="Deployment">`, `value="Deployment"`, `60s ago`,
	} {
		if !strings.Contains(body, strings.ReplaceAll(says, "2030-01-01", noon.Format("2006-01-02"))) {
			t.Errorf("%s is not in the page", says)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

func TestAControllerInTroubleIsOpenOnThePage(t *testing.T) {
	for name, tc := range map[string]struct {
		known runner.Known
		says  string
	}{
		"all is well":           {runner.Known{}, "<details>"},
		"its caches are behind": {runner.Known{WaitingFor: []string{"pods at 7"}}, "<details>"},
		"it fails":              {runner.Known{Failures: 1, LastError: "no"}, "<details open>"},
		"it is paused":          {runner.Known{Paused: "by jane"}, "<details open>"},
		"it is held back":       {runner.Known{Braked: "60 a minute", NextTry: noon.Add(8 * time.Second)}, "<details open>"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]loop{"replicaset-controller": {"default/web-1": tc.known}}, rollout(0, 0, 0)[1:]...)
			body := get(w, browser, "kind=rs&namespace=default&name=web-1").Body.String()
			at := strings.Index(body, "<details")
			if at < 0 || !strings.HasPrefix(body[at:], tc.says) {
				t.Errorf("no %s in\n%s", tc.says, body)
			}
			// A round that ended well says nothing of the object, so it has no badge.
			if bare := strings.HasPrefix(strings.TrimSpace(body[at+len(tc.says):]), "<summary>replicaset-controller"); bare != (name == "all is well") {
				t.Errorf("the controller has no badge: %t", bare)
			}
			if held := strings.Contains(body, "<dt>held back</dt><dd>60 a minute</dd>"); held != (tc.known.Braked != "") {
				t.Errorf("held back is shown: %t", held)
			}
		})
	}
}

func TestWhoAnswersIsSaid(t *testing.T) {
	since := noon.Add(-time.Minute)
	for says, by := range map[string]Process{
		"Answered by this process.": {},
		"Answered by a_1, whose caches were started at 2026-06-01T11:59:00Z, 60s ago.":                                                                  {Identity: "a_1", Leading: true, Since: since},
		"Answered by a_1; the leader is b_7, on b (10.0.0.7).":                                                                                          {Identity: "a_1", Leader: "b_7", LeaderAt: "b", LeaderAddress: "10.0.0.7"},
		"Answered by a shadow (it writes nothing, and says what its controllers would do), whose caches were started at 2026-06-01T11:59:00Z, 60s ago.": {Shadow: true, Since: since},
	} {
		if got := by.inWords(noon); got != says {
			t.Errorf("got %s\nwant %s", got, says)
		}
	}
	w := newWorld(t, nil, rollout(2, 2, 2)...)
	w.Process = func() Process { return Process{Shadow: true, Since: since} }
	question := "kind=deploy&namespace=default&name=web"
	for accept, says := range map[string]string{browser: "Answered by a shadow (", "application/json": `"shadow": true`} {
		if body := get(w, accept, question).Body.String(); !strings.Contains(body, says) {
			t.Errorf("%q is not in\n%s", says, body)
		}
	}
}

func TestTheStyleOfThePageIsTheOneAllowed(t *testing.T) {
	rec := get(newWorld(t, nil), browser, "")
	_, rest, _ := strings.Cut(rec.Body.String(), "<style>")
	inPage, _, ok := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(inPage))
	if got := rec.Header().Get("Content-Security-Policy"); !ok || !strings.Contains(got, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") || !strings.Contains(got, "default-src 'none'") {
		t.Errorf("policy %s", got)
	}
	if outside := regexp.MustCompile(`(?i)<script|<link|<img|\ssrc=|\sstyle=|\son[a-z]+=|https?://|url\(|@import`).FindString(rec.Body.String()); outside != "" {
		t.Errorf("the page has %q", outside)
	}
}

// TestNothingOnThePageIsMarkup puts markup wherever words of others are shown.
func TestNothingOnThePageIsMarkup(t *testing.T) {
	const evil = `"'><script>alert(1)</script><img src=x onerror=alert(2)>`
	all := rollout(1, 1, 0)
	for _, o := range all {
		o.SetFinalizers([]string{evil})
	}
	d := all[0]
	now := metav1.NewTime(noon)
	d.SetDeletionTimestamp(&now)
	d.SetName(evil)
	known := runner.Known{Failures: 1, LastError: evil, WaitingFor: []string{evil},
		Decisions: []act.Decision{{At: noon, Why: evil, Steps: []string{evil}, Became: []string{evil}}}}
	w := newWorld(t, map[string]loop{"deployment-controller": {"default/" + evil: known}}, d)
	w.Process = func() Process {
		return Process{Identity: evil, Leader: evil, LeaderAt: evil, LeaderAddress: evil, LeaseError: evil}
	}
	pages := []string{
		get(w, browser, url.Values{"kind": {"deploy"}, "namespace": {"default"}, "name": {evil}}.Encode()).Body.String(),
		get(w, browser, url.Values{"kind": {"deploy"}, "namespace": {"default"}, "name": {"other"}}.Encode()).Body.String(),
		get(w, browser, url.Values{"kind": {evil}, "namespace": {evil}, "name": {evil}}.Encode()).Body.String(),
		get(w, browser, url.Values{evil: {evil}, "name": {evil}}.Encode()).Body.String(),
		get(w, browser, url.Values{"kind": {evil}}.Encode()).Body.String(),
	}
	w.Kinds = func() *Kinds { return nil }
	pages = append(pages, get(w, browser, "kind=pod&namespace=a&name=b").Body.String(), get(w, browser, "").Body.String())
	if command := commandFor(Asked{"Pod", "a", "$(reboot)"}); command != "" {
		t.Errorf("a command to copy: %s", command)
	}
	for n, body := range pages {
		if strings.Contains(body, "<script") || strings.Contains(body, "<img") {
			t.Errorf("page %d has markup of others:\n%s", n, body)
		}
		if !strings.Contains(html.UnescapeString(body), "<script>alert(1)") {
			t.Errorf("page %d does not show the words at all:\n%s", n, body)
		}
	}
}

func TestProblemsArePagesToo(t *testing.T) {
	w := newWorld(t, nil, rollout(2, 2, 2)...)
	standby := newWorld(t, nil)
	standby.Kinds = func() *Kinds { return nil }
	standby.Process = func() Process { return Process{Identity: "node-a_1", Leader: "node-b_7", LeaderAt: "node-b"} }
	for name, tc := range map[string]struct {
		world    *World
		question string
		code     int
		says     string
	}{
		"nothing asked yet":      {w, "", 200, `<form action="why"`},
		"a kind chosen":          {w, "kind=Pod", 200, `value="Pod"`},
		"no such kind":           {w, "kind=gizmo&namespace=a&name=b", 404, `<a href="why?kind=Deployment">Deployment</a>`},
		"no namespace":           {w, "kind=pod&namespace=&name=b", 400, `is in a namespace`},
		"an unknown parameter":   {w, "kind=pod&namespace=a&name=b&x=y", 400, `unknown parameter`},
		"no such object":         {w, "kind=pod&namespace=default&name=web-1-0", 200, `<a href="why?kind=Pod&amp;name=web-1-00&amp;namespace=default">`},
		"a standby":              {standby, "kind=pod&namespace=a&name=b", 503, `ask the leader, node-b_7, on node-b.`},
		"a standby, no question": {standby, "", 503, `ask the leader, node-b_7, on node-b.`},
	} {
		t.Run(name, func(t *testing.T) {
			rec := get(tc.world, browser, tc.question)
			if rec.Code != tc.code || !strings.Contains(rec.Body.String(), tc.says) || !strings.Contains(rec.Body.String(), `<form action="why"`) {
				t.Errorf("%d, want %d and %s in\n%s", rec.Code, tc.code, tc.says, rec.Body)
			}
		})
	}
}
