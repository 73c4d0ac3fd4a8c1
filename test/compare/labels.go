package compare

import (
	"slices"
	"strings"
)

// KindLabel: a label of a metric has a value with one only.
const KindLabel = "label"

// fixedLabels are those whose values are words of the program: names of queues
// and controllers, results, stages. Others follow what a cluster holds.
var fixedLabels = []string{"name", "controller", "manager", "result", "status", "action", "reason", "completion_mode", "stage", "type",
	"metric_type", "error", "policy", "operation", "update_type", "event", "schema"}

// otherFamilies are metrics of the Go runtime and of the clients, which count what
// a machine and a cluster do.
var otherFamilies = []string{"go_", "process_", "rest_client_", "apiserver_", "authentication_", "authorization_"}

// ParseLabels reads /metrics: the values of each such label, by "family{label}".
func ParseLabels(text string) map[string]string {
	values := map[string][]string{}
	for line := range strings.Lines(text) {
		name, inner, labelled := strings.Cut(line, "{")
		if !labelled || strings.HasPrefix(line, "#") || slices.ContainsFunc(otherFamilies, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, suffix)
		}
		for _, m := range labelValue.FindAllStringSubmatch(inner, -1) {
			key := name + "{" + m[1] + "}"
			if slices.Contains(fixedLabels, m[1]) && !slices.Contains(values[key], m[2]) {
				values[key] = append(values[key], m[2])
			}
		}
	}
	table := map[string]string{}
	for key, all := range values {
		slices.Sort(all)
		table[key] = strings.Join(all, "\n")
	}
	return table
}

// CompareLabels finds the values that one side has only. A family that is there
// in one only is another finding.
func CompareLabels(reference, ours map[string]string) []Finding {
	var findings []Finding
	for _, key := range both(reference, ours) {
		theirs, own := reference[key], ours[key]
		if theirs == "" || own == "" || theirs == own {
			continue
		}
		gone, come := without(strings.Split(theirs, "\n"), strings.Split(own, "\n")), without(strings.Split(own, "\n"), strings.Split(theirs, "\n"))
		for sign, values := range map[string][]string{"only with the reference": gone, "only with ours": come} {
			for _, value := range values {
				findings = append(findings, Finding{Story: staticStory, Controller: "kube-controller-manager", Kind: KindLabel,
					Subject: strings.TrimSuffix(key, "}") + `="` + value + `"}`, Detail: sign})
			}
		}
	}
	slices.SortFunc(findings, func(a, b Finding) int { return strings.Compare(a.key(), b.key()) })
	return findings
}
