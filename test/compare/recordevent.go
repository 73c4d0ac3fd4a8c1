package compare

import (
	"fmt"
	"strings"
)

// event counts what an event object, of either API group, newly tells.
func (b *builder) event(o map[string]any) {
	about := fields(o, "involvedObject")
	message, _ := o["message"].(string)
	if about == nil {
		about = fields(o, "regarding")
		message, _ = o["note"].(string)
	}
	component, _ := fields(o, "source")["component"].(string)
	for _, key := range []string{"reportingComponent", "reportingController"} {
		if other, _ := o[key].(string); component == "" {
			component = other
		}
	}
	times := 1
	for _, n := range []any{o["count"], o["deprecatedCount"], fields(o, "series")["count"]} {
		if n, ok := n.(float64); ok {
			times = max(times, int(n))
		}
	}
	name, _ := fields(o, "metadata")["name"].(string)
	// The recorder folds what comes often; when it begins to is chance.
	message = strings.TrimPrefix(message, "(combined from similar events): ")
	text := fmt.Sprintf("%v %v: %s %v: %s", about["kind"], b.level.text(fmt.Sprint(about["name"])), o["type"], o["reason"], b.level.form(message))
	if b.record.Events[component] == nil {
		b.record.Events[component] = map[string]int{}
	}
	// An event that stands for several similar ones changes its message.
	b.record.Events[component][text] += max(times-b.counted[name], 0)
	b.counted[name] = times
}
