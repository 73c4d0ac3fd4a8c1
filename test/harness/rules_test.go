package harness

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestAskedOf(t *testing.T) {
	for line, want := range map[string]Asked{
		"POST /api/v1/namespaces/a/pods":                                           {"create", "", "pods", "", "a"},
		"PUT /api/v1/namespaces/a/pods/x/status":                                   {"update", "", "pods", "status", "a"},
		"PATCH /apis/batch/v1/namespaces/a/jobs/x/status":                          {"patch", "batch", "jobs", "status", "a"},
		"DELETE /apis/apps/v1/namespaces/a/replicasets":                            {"delete", "apps", "replicasets", "", "a"},
		"DELETE /apis/apps/v1/namespaces/a/replicasets/x":                          {"delete", "apps", "replicasets", "", "a"},
		"GET /api/v1/pods?limit=500&resourceVersion=0":                             {"list", "", "pods", "", ""},
		"GET /api/v1/pods?watch=true&resourceVersion=7":                            {"watch", "", "pods", "", ""},
		"GET /api/v1/pods?watch=1":                                                 {"watch", "", "pods", "", ""},
		"GET /api/v1/pods?watch=true&sendInitialEvents=true":                       {"list", "", "pods", "", ""},
		"GET /api/v1/nodes/n":                                                      {"get", "", "nodes", "", ""},
		"PUT /api/v1/namespaces/a/finalize":                                        {"update", "", "namespaces", "finalize", "a"},
		"POST /api/v1/namespaces/a/pods/x/eviction":                                {"create", "", "pods", "eviction", "a"},
		"GET /apis/example.com/v1/widgets":                                         {"list", "example.com", "widgets", "", ""},
		"GET /apis":                                                                {"get", "", "discovery", "", ""},
		"GET /apis/apps/v1":                                                        {"get", "", "discovery", "", ""},
		"GET /healthz":                                                             {Verb: "get"},
		"POST /api/v1/namespaces/kube-system/serviceaccounts/job-controller/token": {"create", "", "serviceaccounts", "token", "kube-system"},
	} {
		t.Run(line, func(t *testing.T) {
			if got := AskedOf(requestOf(line)); got != want {
				t.Errorf("AskedOf() = %+v, want %+v", got, want)
			}
		})
	}
}

func requestOf(line string) *http.Request {
	var method, path string
	for i := range line {
		if line[i] == ' ' {
			method, path = line[:i], line[i+1:]
			break
		}
	}
	return httptest.NewRequest(method, path, nil)
}

func TestRulesFindTheirRequests(t *testing.T) {
	const create, status, list = "POST /api/v1/namespaces/s-1/pods", "PUT /apis/apps/v1/namespaces/s-1/deployments/x/status", "GET /api/v1/pods"
	for name, tc := range map[string]struct {
		verb      string
		resources []string
		request   string
		want      bool
	}{
		"its verb and resource":                      {"create", []string{"pods"}, create, true},
		"another verb":                               {"update", []string{"pods"}, create, false},
		"another resource":                           {"create", []string{"jobs", "secrets"}, create, false},
		"one of several resources":                   {"create", []string{"jobs", "pods"}, create, true},
		"a write":                                    {"write", []string{"pods"}, create, true},
		"a write is not read":                        {"read", []string{"pods"}, create, false},
		"a list is read":                             {"read", []string{"pods"}, list, true},
		"everything":                                 {"*", []string{"*"}, status, true},
		"a subresource that is named":                {"update", []string{"deployments/status"}, status, true},
		"a subresource that is not":                  {"update", []string{"deployments"}, status, false},
		"another subresource":                        {"update", []string{"deployments/scale"}, status, false},
		"any subresource":                            {"update", []string{"deployments/*"}, status, true},
		"that subresource of anything":               {"write", []string{"*/status"}, status, true},
		"a resource with its group":                  {"write", []string{"deployments.apps/status"}, status, true},
		"a resource of another group":                {"write", []string{"deployments.example.com/status"}, status, false},
		"objects of all namespaces":                  {"list", []string{"pods"}, list, true},
		"another story's namespace":                  {"create", []string{"pods"}, "POST /api/v1/namespaces/t-1/pods", false},
		"a namespace of the cluster":                 {"watch", []string{"secrets"}, "GET /api/v1/namespaces/kube-system/secrets?watch=true", true},
		"discovery where it is named":                {"get", []string{"discovery"}, "GET /apis/apps/v1", true},
		"discovery where it is not":                  {"*", []string{"*"}, "GET /apis/apps/v1", false},
		"an event is not everything":                 {"*", []string{"*"}, "POST /apis/events.k8s.io/v1/namespaces/s-1/events", false},
		"an event that is named":                     {"*", []string{"events"}, "POST /apis/events.k8s.io/v1/namespaces/s-1/events", true},
		"a token is not everything":                  {"*", []string{"*"}, "POST /api/v1/namespaces/kube-system/serviceaccounts/x/token", false},
		"what the process asks about its own access": {"*", []string{"*"}, "POST /apis/authorization.k8s.io/v1/subjectaccessreviews", false},
		"a question that is no resource's":           {"*", []string{"*"}, "GET /healthz", false},
	} {
		t.Run(name, func(t *testing.T) {
			rules := NewRules("s-1")
			rules.Add(Rule{Fault: Fault{Refuse: 500}, Verb: tc.verb, Resources: tc.resources})
			if got := rules.Fault(requestOf(tc.request)); got.Refuse != 0 != tc.want {
				t.Errorf("Fault() = %+v, want a refusal: %t", got, tc.want)
			}
		})
	}
}

func TestRulesAddUp(t *testing.T) {
	const create = "POST /api/v1/namespaces/s-1/pods"
	pods := []string{"pods"}
	rules := NewRules("s-1")
	rules.Add(Rule{Fault: Fault{Delay: time.Second}, Verb: "*", Resources: pods})
	rules.Add(Rule{Fault: Fault{Refuse: 409}, Verb: "create", Resources: pods, Times: 2})
	rules.Add(Rule{Fault: Fault{Lose: LoseByReset}, Verb: "create", Resources: pods, Times: 1})
	for i, want := range []Fault{
		{Delay: time.Second, Refuse: 409}, {Delay: time.Second, Refuse: 409}, {Delay: time.Second, Lose: LoseByReset}, {Delay: time.Second},
	} {
		if _, unused := rules.Unused(); unused != (i < 3) {
			t.Errorf("before request %d: unused = %t", i, unused)
		}
		if got := rules.Fault(requestOf(create)); got != want {
			t.Errorf("request %d: %+v, want %+v", i, got, want)
		}
	}
}

func TestAShareIsTheSameForEachKindOfRequest(t *testing.T) {
	const create, remove = "POST /api/v1/namespaces/s-1/pods", "DELETE /api/v1/namespaces/s-1/pods/x"
	draw := func(others int) (hits string) {
		rules := NewRules("s-1")
		rules.Add(Rule{Fault: Fault{Refuse: 500}, Verb: "write", Resources: []string{"*"}, Share: 30})
		for range 200 {
			for range others {
				rules.Fault(requestOf(remove))
			}
			hits += map[bool]string{true: "x", false: "."}[rules.Fault(requestOf(create)).Refuse != 0]
		}
		return hits
	}
	alone, among := draw(0), draw(3)
	if alone != among {
		t.Errorf("other requests change which are hit:\n%s\n%s", alone, among)
	}
	count := 0
	for _, c := range alone {
		if c == 'x' {
			count++
		}
	}
	if count < 40 || count > 80 {
		t.Errorf("%d of 200 hit, want about 60", count)
	}
}
