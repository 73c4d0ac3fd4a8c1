package options

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/utils/ptr"
)

func TestTheTracingFile(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\n"
	for name, tc := range map[string]struct {
		content string // "" for no file
		want    *tracingapi.TracingConfiguration
		wrong   []string
	}{
		"is that of the API server": {content: head + "endpoint: 10.0.0.1:4317\nsamplingRatePerMillion: 100\n",
			want: &tracingapi.TracingConfiguration{Endpoint: ptr.To("10.0.0.1:4317"), SamplingRatePerMillion: ptr.To[int32](100)}},
		"may be of any version of it": {content: strings.Replace(head, "v1beta1", "v1", 1), want: &tracingapi.TracingConfiguration{}},
		"may be JSON": {content: `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "TracingConfiguration", "samplingRatePerMillion": 1}`,
			want: &tracingapi.TracingConfiguration{SamplingRatePerMillion: ptr.To[int32](1)}},
		"has to be there":               {wrong: []string{"traces.yaml: ", "no such file or directory"}},
		"is no other kind":              {content: strings.Replace(head, "Tracing", "Tracking", 1), wrong: []string{`no kind "TrackingConfiguration" is registered`}},
		"is of a version that is known": {content: strings.Replace(head, "v1beta1", "v9", 1), wrong: []string{"apiserver.config.k8s.io/v9"}},
		"is a mapping":                  {content: "- a\n", wrong: []string{"traces.yaml: "}},
		"names all that is wrong with it": {content: head + "endpoint: http://collector\nendpont: a\nsamplingRatePerMillion: 2000000\nsamplingRatePerMillion: 2000000\n",
			wrong: []string{`unknown field "endpont"`, `key "samplingRatePerMillion" already set`, "unsupported scheme: http", "less than or equal to one million"}},
		"has numbers that can be meant": {content: head + "samplingRatePerMillion: -1\n", wrong: []string{"samplingRatePerMillion", "-1", "must be positive"}},
		"has units that fit":            {content: head + "samplingRatePerMillion: 5s\n", wrong: []string{"samplingRatePerMillion"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "traces.yaml")
			if tc.content != "" {
				if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c, err := parsed(t, "--tracing-config-file="+file, "--concurrent-job-syncs=0")
			if err != nil {
				t.Fatal(err)
			}
			message := fmt.Sprint(c.checked())
			for _, part := range tc.wrong {
				if !strings.Contains(message, part) || !strings.Contains(message, "--tracing-config-file="+file) || !strings.Contains(message, "concurrent-job-syncs") {
					t.Errorf("%q is missing in: %s", part, message)
				}
			}
			if tc.want == nil {
				return
			}
			if got, err := c.applyTracing(); err != nil || strings.Contains(message, "tracing") || fmt.Sprint(deref(got)) != fmt.Sprint(deref(tc.want)) {
				t.Errorf("got %v, %v; want %v; %s", deref(got), err, deref(tc.want), message)
			}
		})
	}
}

func deref(c *tracingapi.TracingConfiguration) []any {
	return []any{ptr.Deref(c.Endpoint, "none"), ptr.Deref(c.SamplingRatePerMillion, -1)}
}
