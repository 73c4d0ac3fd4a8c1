package options

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheRatesOfDeletionsAreRead(t *testing.T) {
	for value, want := range map[string]string{
		"":                                   "[]",
		"600":                                "[{all 600}]",
		"1":                                  "[{all 1}]",
		"600,pods=300":                       "[{all 600} {pods 300}]",
		"pods=300,replicasets.apps=10":       "[{pods 300} {replicasets.apps 10}]",
		"widgets.example.com=1,widgets=1000": "[{widgets.example.com 1} {widgets 1000}]",
	} {
		rates, err := deleteRates(value)
		said := []string{}
		for _, r := range rates {
			said = append(said, fmt.Sprintf("{%s %d}", r, r.PerMinute))
		}
		if got := "[" + strings.Join(said, " ") + "]"; err != nil || got != want {
			t.Errorf("%q is read as %s, want %s (%v)", value, got, want, err)
		}
	}
}

func TestAllBadRatesAreNamed(t *testing.T) {
	for value, says := range map[string][]string{
		"0":              {`--max-deletes-per-minute=0: "0": "0" is not a number of deletions from 1 to 1000000`},
		"-1":             {`"-1" is not a number`},
		"1.5":            {`"1.5" is not a number`},
		"600 ":           {`"600 " is not a number`},
		"1000001":        {`"1000001" is not a number`},
		",":              {`"": "" is not a number`},
		"600,":           {`"": "" is not a number`},
		"600,700":        {`"700": there is a rate of all already`},
		"pods=1,pods=2":  {`"pods=2": there is a rate of pods already`},
		"pods=":          {`"pods=": "" is not a number`},
		"=5":             {`"=5": "" is not a resource`},
		"Pods=5":         {`"Pods" is not a resource`},
		"pods/status=5":  {`"pods/status" is not a resource`},
		"pods=5=6":       {`"5=6" is not a number`},
		"600, pods=300":  {`" pods" is not a resource`},
		"x,pods=y,Z=3,4": {`"x"`, `"y"`, `"Z"`},
	} {
		p := &problems{}
		(&KubeControllerManagerOptions{MaxDeletesPerMinute: value}).checkBrake(p)
		err := p.message()
		if err == nil {
			t.Errorf("%q is read", value)
			continue
		}
		for _, words := range says {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%q: %v does not say %s", value, err, words)
			}
		}
	}
}
