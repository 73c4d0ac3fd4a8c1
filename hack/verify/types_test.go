package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestEachRuleBites(t *testing.T) {
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
