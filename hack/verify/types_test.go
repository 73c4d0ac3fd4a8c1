package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestEachRuleBites(t *testing.T) {
	const in = "hack/verify/testdata/breaks"
	for _, excuse := range []exception{{in, "func excused"}, {in, "func gone"}} {
		exceptions[excuse] = "for this test"
		t.Cleanup(func() { delete(exceptions, excuse) })
	}
	var findings []string
	byTypes(func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }, "./testdata/breaks", "./testdata/holds")
	slices.Sort(findings)
	for _, want := range []string{
		"breaks.go:21: client is a client (k8s.io/client-go/kubernetes.Interface)",
		"breaks.go:22: events is a client",
		"breaks.go:23: writer is a client",
		"breaks.go:30: reaches for a client (Client)",
		"breaks.go:33: plans, and reaches time.Now at testdata/breaks/breaks.go:39",
		"breaks.go:33: plans, and reaches time.Until at testdata/breaks/breaks.go:35",
		"breaks.go:41: plans, and reaches (k8s.io/utils/clock.PassiveClock).Now",
		"breaks.go:41: plans, and reaches (k8s.io/component-base/featuregate.FeatureGate).Enabled",
		"breaks.go:41: plans, and reaches (sigs.k8s.io/controller-runtime/pkg/client.Reader).Get",
		"breaks.go:41: plans, and reaches math/rand/v2.IntN",
		"requests.go:21: documents is a client (k8s.io/client-go/openapi.Client)",
		"requests.go:22: custom is a client (k8s.io/metrics/pkg/client/custom_metrics.MetricsInterface)",
		"requests.go:23: readings is a client (hack/verify/testdata/breaks.readings)",
		"requests.go:24: events is a client (hack/verify/testdata/breaks.events)",
		"requests.go:25: pod is a client (func pod)",
		"requests.go:32: reaches for a client (pod)",
		"hack/verify/testdata/breaks: holds no func gone; the exception is not needed",
	} {
		at := slices.IndexFunc(findings, func(f string) bool { return strings.Contains(f, want) })
		if at < 0 {
			t.Errorf("not found: %s", want)
			continue
		}
		findings = slices.Delete(findings, at, at+1)
	}
	for _, f := range findings {
		t.Errorf("found too: %s", f)
	}
}
