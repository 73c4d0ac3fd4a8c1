package options

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	brakeFlag = "max-deletes-per-minute"
	// mostDeletes bounds a rate: more is a mistake.
	mostDeletes = 1_000_000
)

func (o *KubeControllerManagerOptions) addBrakeFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.MaxDeletesPerMinute, brakeFlag, o.MaxDeletesPerMinute,
		"The `rates` of deletions, such as 600,pods=300: how many objects are deleted in any minute at most, of all resources together, and of single ones (resource, or resource.group). Deletions above it wait for their turn, and nothing is lost. "+
			"A tenth of a minute's deletions may come at once. The metric kcm_deletes_held_total says how often one had to wait. Empty is no limit.")
}

func (o *KubeControllerManagerOptions) checkBrake(p *problems) {
	_, err := deleteRates(o.MaxDeletesPerMinute)
	p.with(brakeFlag, o.MaxDeletesPerMinute, err)
}

// deleteRates reads the flag, and returns all that is wrong with it.
func deleteRates(value string) ([]act.DeleteRate, error) {
	if value == "" {
		return nil, nil
	}
	var rates []act.DeleteRate
	var problems []error
	seen := sets.New[string]()
	for _, entry := range strings.Split(value, ",") {
		rate, err := deleteRate(entry)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("%q: %w", entry, err))
		case seen.Has(rate.String()):
			problems = append(problems, fmt.Errorf("%q: there is a rate of %s already", entry, rate))
		}
		seen.Insert(rate.String())
		rates = append(rates, rate)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return rates, nil
}

func deleteRate(entry string) (rate act.DeleteRate, err error) {
	name, number, of := strings.Cut(entry, "=")
	if !of {
		name, number = "", entry
	} else if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return rate, fmt.Errorf("%q is not a resource, such as pods or replicasets.apps: %s", name, strings.Join(problems, ", "))
	}
	rate.Resource = schema.ParseGroupResource(name)
	rate.PerMinute, err = strconv.Atoi(number)
	if err != nil || rate.PerMinute < 1 || rate.PerMinute > mostDeletes {
		return rate, fmt.Errorf("%q is not a number of deletions from 1 to %d", number, mostDeletes)
	}
	return rate, nil
}
