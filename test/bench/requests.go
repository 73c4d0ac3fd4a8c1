package main

import (
	"iter"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// requests counts what the binary asked of the API server, by verb and resource.
// Its user agents begin with the name of its file. A request of which the log has
// several stages counts once.
func requests(events iter.Seq[harness.TimedAuditEvent], binary string) map[string]int {
	agent := filepath.Base(binary) + "/"
	counts, seen := map[string]int{}, map[string]bool{}
	for event := range events {
		if !strings.HasPrefix(event.UserAgent, agent) || seen[event.AuditID] {
			continue
		}
		seen[event.AuditID] = true
		counts[event.Verb+" "+subject(event.AuditEvent)]++
	}
	return counts
}

// subject is the resource, or the path of a request for none.
func subject(event harness.AuditEvent) string {
	ref := event.ObjectRef
	if ref == nil || ref.Resource == "" {
		path, _, _ := strings.Cut(event.RequestURI, "?")
		return path
	}
	if ref.Subresource != "" {
		return ref.Resource + "/" + ref.Subresource
	}
	return ref.Resource
}

// metric finds a metric without labels in the text of /metrics; 0 if there is none.
func metric(text, name string) float64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				return 0
			}
			return value
		}
	}
	return 0
}

// held sums the metrics of all controllers that count keys kept back because
// caches were behind.
func held(text string) int {
	total := 0.0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ = strings.Cut(name, "{")
		if n, err := strconv.ParseFloat(value, 64); err == nil && strings.HasSuffix(name, "_stale_sync_skips_total") {
			total += n
		}
	}
	return int(total)
}

// queues reads the metrics of the work queues, by the queue's name.
func queues(text string) map[string]report.Queue {
	all := map[string]report.Queue{}
	for line := range strings.Lines(text) {
		metric, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		metric, labels, ok := strings.Cut(metric, "{name=\"")
		n, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			continue
		}
		name, _, _ := strings.Cut(labels, "\"")
		q := all[name]
		switch metric {
		case "workqueue_work_duration_seconds_count":
			q.Count = n
		case "workqueue_work_duration_seconds_sum":
			q.Working = n
		case "workqueue_queue_duration_seconds_sum":
			q.Waiting = n
		default:
			continue
		}
		all[name] = q
	}
	return all
}

// namespaceFigures are about the namespace controller: what it asked for, and
// how often it asked a group that was down.
func namespaceFigures(events iter.Seq[harness.TimedAuditEvent], namespaces int, down, back time.Time) []report.Figure {
	total, seen := 0, map[string]bool{}
	var probes, discoveries []time.Time
	for event := range events {
		if event.Controller() != "namespace-controller" || seen[event.AuditID] || event.Verb == "watch" {
			continue
		}
		seen[event.AuditID] = true
		total++
		if event.Received.Before(down) || event.Received.After(back) {
			continue
		}
		switch path, _, _ := strings.Cut(event.RequestURI, "?"); {
		case strings.HasPrefix(path, "/apis/"+aggregatedGroup+"/"):
			probes = append(probes, event.Received)
		case path == "/apis":
			discoveries = append(discoveries, event.Received)
		}
	}
	return []report.Figure{
		{Name: "namespace controller's requests a namespace", Value: float64(total) / float64(max(1, namespaces))},
		{Name: "probes of the API that is down", Value: float64(len(probes))},
		{Name: "probes within 5 s, at most", Value: float64(most(probes, probeWindow))},
		{Name: "discoveries meanwhile", Value: float64(len(discoveries))},
		{Name: "discoveries within 5 s, at most", Value: float64(most(discoveries, probeWindow))},
	}
}
