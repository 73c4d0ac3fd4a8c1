package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func TestParseProxy(t *testing.T) {
	rule := func(fault harness.Fault, verb string, resources ...string) proxyOrder {
		return proxyOrder{word: "rule", rule: harness.Rule{Fault: fault, Verb: verb, Resources: resources}}
	}
	few := rule(harness.Fault{Lose: harness.LoseByReset}, "create", "pods")
	few.rule.Times, few.rule.Share = 3, 30
	for line, want := range map[string]proxyOrder{
		"":                                 {},
		"off":                              {word: "off"},
		"used":                             {word: "used"},
		"watches cut pods,jobs":            {word: "cut", resources: []string{"pods", "jobs"}},
		"lag 2s pods":                      {word: "lag", resources: []string{"pods"}, late: 2 * time.Second},
		"watches expire *":                 {word: "expire", resources: []string{"*"}},
		"refuse 409 delete pods":           rule(harness.Fault{Refuse: 409}, "delete", "pods"),
		"delay 300ms read *":               rule(harness.Fault{Delay: 300 * time.Millisecond}, "read", "*"),
		"stall 3s write jobs/status":       rule(harness.Fault{Stall: 3 * time.Second}, "write", "jobs/status"),
		"lose 504 update deployments.apps": rule(harness.Fault{Lose: 504}, "update", "deployments.apps"),
		"cut list pods":                    rule(harness.Fault{Cut: true}, "list", "pods"),
		"early create pods":                rule(harness.Fault{Early: true, Delay: lateBy}, "create", "pods"),
		"absent 405 widgets":               rule(harness.Fault{Absent: 405}, "list", "widgets"),
		"lose reset create pods times=3 share=30%": few,
	} {
		t.Run(line, func(t *testing.T) {
			got, err := parseProxy(line)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(proxyOrder{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProxyLinesThatAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"explode create pods":                  `proxy does not know "explode"`,
		"off now":                              "proxy off takes nothing",
		"watches stop pods":                    "proxy watches takes cut or expire",
		"lag pods":                             "proxy lag takes a duration",
		"lag late pods":                        `proxy lag: "late" is no duration`,
		"watches cut":                          "proxy watches takes cut or expire",
		"refuse often create pods":             `proxy refuse: "often" is no code from 400 to 599`,
		"refuse 200 create pods":               `proxy refuse: "200" is no code`,
		"absent 500 pods":                      `proxy absent: "500" is no code from 404 to 405`,
		"delay long create pods":               `proxy delay: "long" is no duration`,
		"delay 2m create pods":                 `proxy delay: "2m" is no duration up to a minute`,
		"lose softly create pods":              `proxy lose: "softly" is no code`,
		"cut everything pods":                  "proxy cut wants a verb",
		"refuse 500 create":                    "proxy refuse wants a verb",
		"refuse":                               `proxy refuse: "" is no code`,
		"refuse 500 create pods/":              `"pods/" is no resource`,
		"refuse 500 create pods,":              `"" is no resource`,
		"refuse 500 create pods times=0":       "proxy takes times=N and share=P%",
		"refuse 500 create pods share=30":      "proxy takes times=N and share=P%",
		"refuse 500 create pods share=300%":    "proxy takes times=N and share=P%",
		"refuse 500 create pods times=3 often": `not "often"`,
	} {
		t.Run(line, func(t *testing.T) {
			_, err := Parse("s.txtar", []byte("proxy\nproxy "+line))
			if err == nil || !strings.Contains(err.Error(), "s.txtar:2: ") || !strings.Contains(err.Error(), want) {
				t.Errorf("Parse() = %v, want %q", err, want)
			}
		})
	}
}

func TestAProxyBelongsToTheSetup(t *testing.T) {
	for name, tc := range map[string]struct {
		story          string
		proxy, private bool
		refused        string
	}{
		"at the top":                           {"proxy\nstart a\nproxy cut list pods", true, false, ""},
		"after the start line":                 {"start a\nproxy\nproxy off", true, false, ""},
		"faults before the manager":            {"proxy\nproxy refuse 500 list pods\nstart a", false, true, ""},
		"none at all":                          {"start a\nrestart", false, false, ""},
		"faults without a proxy":               {"start a\nproxy refuse 500 list pods", false, false, `s.txtar:2: the story has no proxy`},
		"a proxy after the manager is running": {"start a\nrestart\nproxy", false, false, "s.txtar:3: proxy without words comes before"},
	} {
		t.Run(name, func(t *testing.T) {
			story, err := Parse("s.txtar", []byte(tc.story))
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("Parse() = %v, want %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if story.Setup.Proxy != tc.proxy || story.Private != tc.private {
				t.Errorf("proxy %t, private %t", story.Setup.Proxy, story.Private)
			}
		})
	}
	with, without := Setup{Proxy: true}, Setup{}
	if with.key() == without.key() {
		t.Error("stories with and without a proxy share a process")
	}
}

func TestKubeletLinesAddUp(t *testing.T) {
	care := harness.Care{On: true}
	for _, step := range []struct {
		line string
		want harness.Care
	}{
		{"slow-start", harness.Care{On: true, SlowStart: true}},
		{"slow-stop", harness.Care{On: true, SlowStart: true, SlowStop: true}},
		{"pending", harness.Care{On: true, SlowStart: true, SlowStop: true, Unbound: true}},
		{"on", harness.Care{On: true}},
		{"reject OutOfcpu", harness.Care{On: true, Reject: "OutOfcpu"}},
		{"off", harness.Care{Reject: "OutOfcpu"}},
		{"on", harness.Care{On: true}},
	} {
		var err error
		if care, err = caredFor(care, step.line); err != nil || care != step.want {
			t.Fatalf("kubelet %s: %+v, %v, want %+v", step.line, care, err, step.want)
		}
	}
}

func TestLinesAboutPodsAndNodesThatAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"kubelet reject":               "kubelet takes one of on, off",
		"kubelet on now":               "kubelet takes one of on, off",
		"node a":                       "node takes NAME and a state",
		"node a taint":                 "node NAME taint takes 1 to 1 further words",
		"node a taint key":             `"key" is no taint`,
		"node a taint key=v:Sometimes": `"key=v:Sometimes" is no taint`,
		"node a untaint :NoSchedule":   `":NoSchedule" is no taint`,
		"node a cordon now":            "node NAME cordon takes 0 to 0",
		"node a ready fast":            "node NAME ready takes zone=Z",
		"fail jobs/a#x":                `"jobs/a#x" is no pod`,
		"fail jobs/a#0 whole=1":        `fail does not take "whole=1"`,
		"kill":                         "kill takes POD",
		"kill jobs/a#0 softly":         "kill takes POD",
		"kill jobs/a#-1":               `"jobs/a#-1" is no pod`,
		"lose a b":                     "lose takes POD",
		"label-pod jobs/a#0":           "label-pod takes RES/NAME and key=value",
		"label-pod jobs/a#0 k":         "label-pod takes key=value or key-",
		"pass":                         "is no duration",
		"pass 1h":                      "is no duration up to a minute",
		"undo statefulsets/a":          "undo takes deployments/NAME",
		"undo deployments/*":           "undo takes deployments/NAME",
	} {
		t.Run(line, func(t *testing.T) {
			if _, err := Parse("s.txtar", []byte(line)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Parse() = %v, want %q", err, want)
			}
		})
	}
}

func TestPick(t *testing.T) {
	pod := func(name string, age int, index string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(int64(1000-age), 0)}}
		if index != "" {
			p.Labels = map[string]string{"apps.kubernetes.io/pod-index": index}
		}
		return p
	}
	plain := []corev1.Pod{pod("c", 1, ""), pod("b", 3, ""), pod("a", 1, "")}
	numbered := []corev1.Pod{pod("web-10", 9, "10"), pod("web-2", 1, "2")}
	for name, tc := range map[string]struct {
		pods  []corev1.Pod
		index int
		want  string
	}{
		"the oldest first":                  {plain, 0, "b"},
		"the name decides between equals":   {plain, 1, "a"},
		"beyond the last":                   {plain, 5, "c"},
		"the ordinal counts more than age":  {numbered, 0, "web-2"},
		"the ordinal is compared as number": {numbered, 1, "web-10"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pick(tc.pods, tc.index); len(got) != 1 || got[0].Name != tc.want {
				t.Errorf("pick() = %v, want %s", got, tc.want)
			}
		})
	}
	if got := pick(plain, -1); len(got) != 3 {
		t.Errorf("without an index: %d pods, want all", len(got))
	}
}
