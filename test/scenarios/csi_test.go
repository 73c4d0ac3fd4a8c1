package scenarios

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/test/csi"
)

func TestParseCSI(t *testing.T) {
	for line, want := range map[string]driving{
		"a.example":                                {driver: "a.example"},
		"a.example off":                            {driver: "a.example", off: true},
		"a.example attacher resizer":               {driver: "a.example", sidecars: []csi.Sidecar{csi.Attacher, csi.Resizer}},
		"a.example attach works":                   {driver: "a.example", call: csi.Attach},
		"a.example detach hangs":                   {driver: "a.example", call: csi.Detach, answer: csi.Answer{Never: true}},
		`a.example provision fails "out of space"`: {driver: "a.example", call: csi.Provision, answer: csi.Answer{Error: "out of space"}},
		"a.example delete fails it is in use":      {driver: "a.example", call: csi.Delete, answer: csi.Answer{Error: "it is in use"}},
	} {
		t.Run(line, func(t *testing.T) {
			got, err := parseCSI(line)
			if d := cmp.Diff(want, got, cmp.AllowUnexported(driving{})); err != nil || d != "" {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
	for _, line := range []string{"", "a.example snapshotter", "a.example off attacher", "a.example attach", "a.example attach fails",
		"a.example attach works well", "a.example attach hangs on", "a.example attacher attach works"} {
		if got, err := parseCSI(line); err == nil {
			t.Errorf("%q was taken as %+v", line, got)
		}
	}
}
