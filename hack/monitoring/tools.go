//go:build tools

// Package monitoring pins the Prometheus that the rules and the dashboard are tried with.
// It is a module of its own, so that nothing of it reaches the product or the other tools.
package monitoring

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
