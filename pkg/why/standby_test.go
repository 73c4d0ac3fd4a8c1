package why

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAStandbyNamesTheLeader(t *testing.T) {
	w := newWorld(t, nil)
	w.Kinds = func() *Kinds { return nil }
	for says, process := range map[string]Process{
		"knows no objects: ask the leader, node-b_7, on node-b (10.0.0.7).": {Identity: "node-a_1", Leader: "node-b_7", LeaderAt: "node-b", LeaderAddress: "10.0.0.7"},
		"knows no objects: ask the leader, node-b_7, on node-b.":            {Identity: "node-a_1", Leader: "node-b_7", LeaderAt: "node-b"},
		"nobody leads.": {Identity: "node-a_1"},
		"nobody leads. Its last request for the lease failed: leases is forbidden": {Identity: "node-a_1", LeaseError: "leases is forbidden"},
		"starts and knows no objects yet":                                          {},
		"leads and has not filled its caches yet":                                  {Identity: "node-a_1", Leader: "node-a_1", Leading: true},
	} {
		w.Process = func() Process { return process }
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/debug/why?kind=pod&namespace=a&name=b", nil))
		var p Problem
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Code != http.StatusServiceUnavailable {
			t.Fatalf("%d %s: %v", rec.Code, rec.Body, err)
		}
		if !strings.Contains(p.Message, says) || p.Process != process || p.Code != rec.Code || p.APIVersion != APIVersion {
			t.Errorf("%q is not in %+v", says, p)
		}
	}
}

func TestAnUnknownNameIsAnsweredWithWhatIsKnown(t *testing.T) {
	w := newWorld(t, nil, rollout(3, 3, 3)...)
	a := ask(t, w, "pod", "web-1-2")
	if want := []string{"the cache has 3 objects of its kind in namespace default"}; !slices.Equal(a.Objects[0].Facts, want) {
		t.Errorf("facts %q", a.Objects[0].Facts)
	}
	if len(a.Nearest) != 3 || a.Nearest[0] != (Asked{"Pod", "default", "web-1-00"}) {
		t.Errorf("nearest: %v", a.Nearest)
	}
	if a := ask(t, newWorld(t, nil), "deploy", "web"); len(a.Nearest) != 0 || a.Objects[0].Facts[0] != "the cache has 0 objects of its kind in namespace default" {
		t.Errorf("of an empty cache: %+v", a)
	}
	if a := ask(t, w, "pod", "web-1-00"); a.Nearest != nil {
		t.Errorf("of a known object: %v", a.Nearest)
	}
	for name, want := range map[string]string{"web-2": "web-2-a", "db-0": "db-0", "worker": "my-worker"} {
		if got := nearest(Kind{}, name, []string{"default/web-1-b", "default/web-2-a", "default/db-0", "default/db-1", "default/my-worker"}); got[0].Name != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestKindsOfAnEarlierAnswerAreKept(t *testing.T) {
	now := KindsOf([]*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: "secrets", SingularName: "secret", Kind: "Secret", Namespaced: true, Verbs: metav1.Verbs{"get"}}}}})
	now.Keep(served)
	for _, word := range []string{"pod", "secret", "deploy", "nodes"} {
		if _, ok := now.Find(word); !ok {
			t.Errorf("%s is not known", word)
		}
	}
	if _, ok := now.Find("po"); ok {
		t.Error("a kind that is answered for again is as it was")
	}
}
