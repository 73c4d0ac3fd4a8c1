package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/why"
)

// noObject are the controllers whose keys are no objects that can be asked for, and why.
var noObject = map[string]string{
	names.LegacyServiceAccountTokenCleanerController: "its keys are namespaces that it passes over",
	names.CloudNodeLifecycleController:               "its loop is that of a library",
	names.NodeRouteController:                        "its loop is that of a library",
	names.ServiceLBController:                        "its loop is that of a library",
}

func TestEveryControllerWorksOnSomeKind(t *testing.T) {
	on := map[string]bool{names.GarbageCollectorController: true}
	for kind, all := range works {
		for _, work := range all {
			if !slices.Contains(names.All(), work.Controller) {
				t.Errorf("%s works on %s and is not known", work.Controller, kind)
			}
			on[work.Controller] = true
		}
	}
	for _, name := range names.All() {
		if _, excused := noObject[name]; excused == on[name] {
			t.Errorf("%s: works on a kind is %t, is excused from it is %t", name, on[name], excused)
		}
	}
}

func TestAStandbyAnswersThatItKnowsNothing(t *testing.T) {
	paths := testProcess(t, testConfig(t)).endpoints()
	w := httptest.NewRecorder()
	paths.ServeHTTP(w, httptest.NewRequest(http.MethodGet, whyPath+"?kind=pod&namespace=a&name=b", nil))
	var answer why.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusServiceUnavailable {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if answer.APIVersion != why.APIVersion || answer.Kind != why.ProblemKind || answer.Process.Leading {
		t.Errorf("got %+v", answer)
	}
}

func TestDebugPathsAreListedAndNeedNoSlash(t *testing.T) {
	paths := testProcess(t, testConfig(t)).endpoints()
	for path, says := range map[string]string{
		strings.TrimSuffix(debugPrefix, "/"): "[]", debugPrefix: "[]",
		"/statusz": " /debug ", // of a path the library shows the first part
	} {
		w := httptest.NewRecorder()
		paths.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/debug/controllers", whyPath} {
		if !slices.Contains(paths.ListedPaths(), path) {
			t.Errorf("%s is not among %v", path, paths.ListedPaths())
		}
	}
}
