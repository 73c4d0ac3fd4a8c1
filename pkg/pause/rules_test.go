package pause

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var names = Names{
	All:     []string{"deployment-controller", "job-controller", "namespace-controller"},
	Aliases: map[string]string{"deployment": "deployment-controller", "job": "job-controller"},
}

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kcm-pause"}, Data: data}
}

func TestWhatIsPaused(t *testing.T) {
	const by = " by ConfigMap kube-system/kcm-pause"
	for name, tc := range map[string]struct {
		data                  map[string]string
		controller, namespace string
		why                   string
	}{
		"nothing":                                {nil, "job-controller", "shop", ""},
		"empty lists":                            {map[string]string{"controllers": " ,\n", "namespaces": ""}, "job-controller", "shop", ""},
		"a controller":                           {map[string]string{"controllers": "job-controller"}, "job-controller", "shop", "job-controller is paused" + by},
		"a controller, outside of namespaces":    {map[string]string{"controllers": "job-controller"}, "job-controller", "", "job-controller is paused" + by},
		"another controller":                     {map[string]string{"controllers": "job-controller"}, "deployment-controller", "shop", ""},
		"an older name":                          {map[string]string{"controllers": "job"}, "job-controller", "shop", "job-controller is paused" + by},
		"the last of several":                    {map[string]string{"controllers": "deployment,\n  job"}, "job-controller", "shop", "job-controller is paused" + by},
		"a namespace":                            {map[string]string{"namespaces": "bank shop"}, "job-controller", "shop", "namespace shop is paused" + by},
		"another namespace":                      {map[string]string{"namespaces": "bank"}, "job-controller", "shop", ""},
		"a namespace, outside of namespaces":     {map[string]string{"namespaces": "bank"}, "job-controller", "", ""},
		"a controller in a namespace":            {map[string]string{"controllers": "shop/job"}, "job-controller", "shop", "job-controller is paused in namespace shop" + by},
		"a controller in another namespace":      {map[string]string{"controllers": "bank/job"}, "job-controller", "shop", ""},
		"another controller in the namespace":    {map[string]string{"controllers": "shop/job"}, "deployment-controller", "shop", ""},
		"every controller":                       {map[string]string{"controllers": "*"}, "namespace-controller", "", "every controller is paused" + by},
		"every controller in a namespace":        {map[string]string{"controllers": "shop/*"}, "job-controller", "shop", "namespace shop is paused" + by},
		"both keys":                              {map[string]string{"controllers": "job", "namespaces": "bank"}, "deployment-controller", "bank", "namespace bank is paused" + by},
		"a reason is said":                       {map[string]string{"controllers": "job", "reason": " incident\n 4711 "}, "job-controller", "", "job-controller is paused" + by + ": incident 4711"},
		"a reason alone pauses nothing":          {map[string]string{"reason": "incident"}, "job-controller", "", ""},
		"a namespace that is there or not there": {map[string]string{"namespaces": "not-made-yet"}, "job-controller", "not-made-yet", "namespace not-made-yet is paused" + by},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := Parse(configMap(tc.data), names)
			if err != nil {
				t.Fatal(err)
			}
			if why := rules.Paused(tc.controller, tc.namespace); why != tc.why {
				t.Errorf("said %q, want %q", why, tc.why)
			}
		})
	}
}

func TestAConfigMapThatIsNotThere(t *testing.T) {
	if rules, err := Parse(nil, names); err != nil || !rules.empty() || rules.Paused("job-controller", "shop") != "" {
		t.Errorf("pauses %s: %v", rules, err)
	}
}

func TestWhatIsNotUnderstood(t *testing.T) {
	binary := configMap(map[string]string{"namespaces": "shop"})
	binary.BinaryData = map[string][]byte{"controllers": {0xff}}
	for name, tc := range map[string]struct {
		from *corev1.ConfigMap
		says []string
	}{
		"an unknown controller":       {configMap(map[string]string{"controllers": "jobs"}), []string{`controllers: "jobs": there is no controller "jobs"`}},
		"an unknown one in namespace": {configMap(map[string]string{"controllers": "shop/jobs"}), []string{`controllers: "shop/jobs": there is no controller "jobs"`}},
		"an exclusion":                {configMap(map[string]string{"controllers": "*,-job"}), []string{`there is no controller "-job"`}},
		"a bad namespace":             {configMap(map[string]string{"namespaces": "Shop"}), []string{`namespaces: "Shop": "Shop" is not the name of a namespace`}},
		"a namespace that is a star":  {configMap(map[string]string{"namespaces": "*"}), []string{`namespaces: "*"`}},
		"no namespace":                {configMap(map[string]string{"controllers": "/job"}), []string{`"" is not the name of a namespace`}},
		"two slashes":                 {configMap(map[string]string{"controllers": "a/b/job"}), []string{`there is no controller "b/job"`}},
		"an unknown key":              {configMap(map[string]string{"controler": "job"}), []string{"controler: not a key of this ConfigMap; the keys are controllers, namespaces and reason"}},
		"YAML":                        {configMap(map[string]string{"controllers": "[job]"}), []string{`there is no controller "[job]"`}},
		"binary data":                 {binary, []string{"controllers: binary data is not understood"}},
		"all of it at once": {configMap(map[string]string{"controllers": "jobs, deploy", "namespaces": "A", "x": ""}),
			[]string{`"jobs"`, `"deploy"`, `"A"`, "x: not a key"}},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := Parse(tc.from, names)
			if err == nil || !rules.empty() {
				t.Fatalf("understood as: %s", rules)
			}
			for _, says := range tc.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q does not say %s", err, says)
				}
			}
		})
	}
}

func TestWhatIsPausedInWords(t *testing.T) {
	for want, data := range map[string]map[string]string{
		"nothing is paused":                     nil,
		"deployment-controller, job-controller": {"controllers": "job deployment"},
		"every controller":                      {"controllers": "* job"},
		"job-controller; deployment-controller in namespace bank; every controller in namespace shop (audit)": {
			"controllers": "job bank/deployment shop/job", "namespaces": "shop", "reason": "audit"},
	} {
		rules, err := Parse(configMap(data), names)
		if got := rules.String(); err != nil || got != want {
			t.Errorf("%v is %q, want %q (%v)", data, got, want, err)
		}
	}
	long, _ := Parse(configMap(map[string]string{"reason": strings.Repeat("ä", 1000), "controllers": "job"}), names)
	if why := long.Paused("job-controller", ""); len(why) > 600 || !strings.HasSuffix(why, " ...") {
		t.Errorf("a long reason is said as %q", why)
	}
}
