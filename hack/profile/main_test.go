package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// written writes a profile of one function with a sample.
func written(t *testing.T, function string, value int64) string {
	t.Helper()
	m := &profile.Mapping{ID: 1, File: "/home/somebody/kube-controller-manager", BuildID: "id"}
	fn := &profile.Function{ID: 1, Name: function, SystemName: function, Filename: "runtime/proc.go"}
	at := &profile.Location{ID: 1, Mapping: m, Line: []profile.Line{{Function: fn, Line: 7}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 1,
		TimeNanos: 42, Comments: []string{"by somebody"}, Mapping: []*profile.Mapping{m}, Function: []*profile.Function{fn}, Location: []*profile.Location{at},
		Sample: []*profile.Sample{{Location: []*profile.Location{at}, Value: []int64{value}, Label: map[string][]string{"who": {"somebody"}}}},
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "cpu.pb.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := p.Write(f); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func TestProfilesAreMergedAndSayNothingOfTheMachine(t *testing.T) {
	out := filepath.Join(t.TempDir(), "merged.pgo")
	if err := run(out, []string{written(t, "a", 3), written(t, "b", 4), written(t, "a", 5)}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(data) // as it is: read would clean it once more
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, sample := range p.Sample {
		got[sample.Location[0].Line[0].Function.Name] += sample.Value[0]
	}
	if got["a"] != 8 || got["b"] != 4 {
		t.Errorf("got %v", got)
	}
	if text := p.String(); strings.Contains(text, "somebody") {
		t.Errorf("it says whose it is:\n%s", text)
	}
}

func TestAFileThatIsNoProfile(t *testing.T) {
	if err := run(filepath.Join(t.TempDir(), "out"), []string{"main.go"}); err == nil || !strings.Contains(err.Error(), "read main.go") {
		t.Errorf("got %v", err)
	}
}
