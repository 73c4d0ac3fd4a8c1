package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
	"github.com/kube-kcm/kube-controller-manager/test/scenarios"
)

// Record is what one story left behind under one binary, levelled. It is the
// same for two runs of a binary that behaves the same, as far as that can be.
type Record struct {
	// Killed means that the story kills the manager, which may cut requests
	// and events off.
	Killed bool `json:"killed,omitempty"`
	// Failures are what the story complained about.
	Failures []string `json:"failures,omitempty"`
	// Objects are the YAML texts of the objects at the end, by identity.
	Objects map[string][]string `json:"objects,omitempty"`
	// Events counts occurrences, by text, per emitting component.
	Events map[string]map[string]int `json:"events,omitempty"`
	// Statuses hold, by identity and field, the values that the field went
	// through, once for each object of that identity.
	Statuses map[string]map[string][][]string `json:"statuses,omitempty"`
	// Numbers hold the least and the greatest value of a number, in the same way.
	Numbers map[string]map[string][2]float64 `json:"numbers,omitempty"`
	// Times say, by identity and field, how the times of an object moved and where they lay.
	Times map[string]map[string][]string `json:"times,omitempty"`
	// Writes counts requests by "verb resource/subresource", per controller.
	Writes map[string]map[string]int `json:"writes,omitempty"`
	// Reads counts what was only read, in the same way. It is shown, not
	// compared: a list or watch belongs to the start of a manager.
	Reads map[string]map[string]int `json:"reads,omitempty"`
	// Used counts every request by "verb resource.group/subresource", per controller.
	Used map[string]map[string]int `json:"used,omitempty"`
	// Bodies are the distinct bodies of creates and patches and the options of deletions, by
	// "verb resource.group/subresource name", per controller. Guards say what patches and deletions insist on.
	Bodies map[string]map[string][]string `json:"bodies,omitempty"`
	Guards map[string]map[string][]string `json:"guards,omitempty"`
	// Waits are how long the expectations of the story took.
	Waits []scenarios.Waited `json:"waits,omitempty"`
	// Authors are the controllers that wrote an object, by identity.
	Authors map[string][]string `json:"authors,omitempty"`
}

// NewRecord levels what was recorded. Objects are decoded JSON.
func NewRecord(namespace string, objects []map[string]any, requests []harness.AuditEvent, failures []string) *Record {
	b := &builder{
		record: &Record{
			Failures: failures, Objects: map[string][]string{}, Events: map[string]map[string]int{},
			Statuses: map[string]map[string][][]string{}, Numbers: map[string]map[string][2]float64{},
			Writes: map[string]map[string]int{}, Reads: map[string]map[string]int{}, Used: map[string]map[string]int{},
			Times: map[string]map[string][]string{}, Bodies: map[string]map[string][]string{}, Guards: map[string]map[string][]string{}, Authors: map[string][]string{},
		},
		level:     newLeveller(namespace, generatedNames(objects, requests)),
		histories: map[string]*history{},
		counted:   map[string]int{},
		moments:   map[string]map[string]moment{},
	}
	for _, object := range objects {
		b.object(object)
	}
	for _, request := range requests {
		b.request(request)
	}
	b.close()
	return b.record
}

// builder fills a record.
type builder struct {
	record    *Record
	level     *leveller
	histories map[string]*history
	// counted is how often an event object said it had happened.
	counted map[string]int
	// moments are the times of each object after the last write.
	moments map[string]map[string]moment
}

// history is what the status of one object went through.
type history struct {
	identity string
	values   map[string][]string
}

func (b *builder) object(o map[string]any) {
	levelled := b.level.object(o)
	text, err := yaml.Marshal(levelled)
	if err != nil {
		text = []byte(err.Error())
	}
	identity := b.level.identity(o)
	b.record.Objects[identity] = append(b.record.Objects[identity], string(text))
}

func (b *builder) request(request harness.AuditEvent) {
	if request.ObjectRef == nil {
		return
	}
	who, what := request.Controller(), request.ObjectRef.Resource
	if request.ObjectRef.Subresource != "" {
		what += "/" + request.ObjectRef.Subresource
	}
	count(b.record.Used, who, requestName(request))
	if !request.Write() {
		count(b.record.Reads, who, request.Verb+" "+what)
		return
	}
	answered := answer(request)
	done := request.ResponseStatus.Code < 300
	if what == "events" && done && answered["kind"] == "Event" {
		b.event(answered)
		return
	}
	if what == "events" && request.Verb != "deletecollection" {
		return
	}
	switch {
	case done:
		count(b.record.Writes, who, request.Verb+" "+what)
	case overtaken(request):
		count(b.record.Writes, who, request.Verb+" "+what+conflict)
	case !cutOff(request):
		count(b.record.Writes, who, request.Verb+" "+what+refused)
	}
	b.body(who, request)
	if !done || answered == nil || fields(answered, "metadata") == nil {
		return
	}
	if kind, _ := answered["kind"].(string); kind == "Status" || strings.HasSuffix(kind, "List") {
		return
	}
	identity := b.level.identity(answered)
	if !slices.Contains(b.record.Authors[identity], who) {
		b.record.Authors[identity] = append(b.record.Authors[identity], who)
	}
	b.times(identity, answered, request.Received, request.ObjectRef.Subresource == "")
	if request.ObjectRef.Subresource == "status" {
		b.status(identity, answered)
	}
}

func count(table map[string]map[string]int, row, column string) {
	if table[row] == nil {
		table[row] = map[string]int{}
	}
	table[row][column]++
}

// status adds a status that a controller has written to the object's history.
func (b *builder) status(identity string, o map[string]any) {
	key := fmt.Sprint(identity, fields(o, "metadata")["uid"])
	h := b.histories[key]
	if h == nil {
		h = &history{identity: identity, values: map[string][]string{}}
		b.histories[key] = h
	}
	leaves := map[string]string{}
	numbers := map[string]float64{}
	flatten("status", b.level.object(o)["status"], leaves, numbers, b.level)
	switch o["kind"] {
	case "Pod":
		maps.DeleteFunc(leaves, byNode)
	case "Node":
		delete(leaves, "status.volumesInUse") // the kubelet's; how far it was by then is chance
	}
	for field, value := range leaves {
		if seen := h.values[field]; len(seen) == 0 || seen[len(seen)-1] != value {
			h.values[field] = append(seen, value)
		}
	}
	for field, seen := range h.values {
		if _, there := leaves[field]; !there && seen[len(seen)-1] != absent {
			h.values[field] = append(seen, absent)
		}
	}
	if b.record.Numbers[identity] == nil {
		b.record.Numbers[identity] = map[string][2]float64{}
	}
	for field, n := range numbers {
		// A count begins at nothing.
		span := b.record.Numbers[identity][field]
		b.record.Numbers[identity][field] = [2]float64{min(span[0], n), max(span[1], n)}
	}
}

// byNode reports whether a field of a pod's status tells what its node has said by
// then: how far that was when a controller wrote is chance.
func byNode(field, value string) bool {
	if strings.HasPrefix(field, "status.conditions[") {
		return value == "True <nil> "
	}
	return field != "status.phase" || value != "Failed"
}

// absent is the value of a field that has gone.
const absent = "<absent>"

// flatten gives each field of a status its path. A condition is one value
// under its type.
func flatten(path string, v any, leaves map[string]string, numbers map[string]float64, l *leveller) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if key != "observedGeneration" {
				flatten(path+"."+key, inner, leaves, numbers, l)
			}
		}
	case []any:
		for _, inner := range v {
			condition, _ := inner.(map[string]any)
			kind, _ := condition["type"].(string)
			if !strings.HasSuffix(path, ".conditions") || kind == "" {
				leaves[path] = encode(v)
				return
			}
			message, _ := condition["message"].(string)
			leaves[path+"["+kind+"]"] = fmt.Sprintf("%v %v %s", condition["status"], condition["reason"], l.form(message))
		}
	case float64:
		numbers[path] = v
	case nil:
	default:
		leaves[path] = fmt.Sprint(v)
	}
}

// close turns what was gathered by object into what is compared.
func (b *builder) close() {
	for _, key := range slices.Sorted(maps.Keys(b.histories)) {
		h := b.histories[key]
		if b.record.Statuses[h.identity] == nil {
			b.record.Statuses[h.identity] = map[string][][]string{}
		}
		for field, values := range h.values {
			b.record.Statuses[h.identity][field] = append(b.record.Statuses[h.identity][field], values)
		}
	}
	for _, texts := range b.record.Objects {
		slices.Sort(texts)
	}
	for _, who := range b.record.Authors {
		slices.Sort(who)
	}
}
