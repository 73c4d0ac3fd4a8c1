package pause

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The keys of the ConfigMap. Those of both lists are separated by commas or white space.
const (
	// controllersKey names controllers, and namespace/controller for one in a namespace.
	controllersKey = "controllers"
	// namespacesKey names namespaces, in which no controller writes.
	namespacesKey = "namespaces"
	// reasonKey is free text for who asks why.
	reasonKey = "reason"
)

// every stands for all controllers.
const every = "*"

// longestReason bounds what is repeated in each decision of a key.
const longestReason = 200

// Names are the controllers that there are: their canonical names, and those of older names.
type Names struct {
	All     []string
	Aliases map[string]string
}

// canonical returns the name of a controller; false if there is none.
func (n Names) canonical(name string) (string, bool) {
	if known, ok := n.Aliases[name]; ok {
		return known, true
	}
	return name, name == every || slices.Contains(n.All, name)
}

// Rules are what is paused. The zero value pauses nothing.
type Rules struct {
	// controllers are paused in all namespaces and outside of them.
	controllers sets.Set[string]
	// in has the controllers that are paused in a namespace.
	in map[string]sets.Set[string]
	// by names who asked.
	by, reason string
}

// everything pauses every controller.
func everything(by, reason string) Rules {
	return Rules{controllers: sets.New(every), by: by, reason: reason}
}

// Parse reads a ConfigMap; nil pauses nothing. All that is not understood is in the error,
// and then there are no rules.
func Parse(from *corev1.ConfigMap, names Names) (Rules, error) {
	if from == nil {
		return Rules{}, nil
	}
	r := Rules{controllers: sets.New[string](), in: map[string]sets.Set[string]{}, by: "ConfigMap " + from.Namespace + "/" + from.Name}
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(from.Data)) {
		value := from.Data[key]
		switch key {
		case controllersKey:
			problems = append(problems, r.addControllers(value, names)...)
		case namespacesKey:
			problems = append(problems, r.addNamespaces(value)...)
		case reasonKey:
			r.reason = short(value)
		default:
			problems = append(problems, fmt.Errorf("%s: not a key of this ConfigMap; the keys are %s, %s and %s", key, controllersKey, namespacesKey, reasonKey))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(from.BinaryData)) {
		problems = append(problems, fmt.Errorf("%s: binary data is not understood", key))
	}
	if err := errors.Join(problems...); err != nil {
		return Rules{}, err
	}
	return r, nil
}

func (r *Rules) addControllers(list string, names Names) (problems []error) {
	for _, word := range words(list) {
		namespace, controller, within := strings.Cut(word, "/")
		if !within {
			namespace, controller = "", word
		}
		name, known := names.canonical(controller)
		if !known {
			problems = append(problems, fmt.Errorf("%s: %q: there is no controller %q", controllersKey, word, controller))
		}
		if within {
			problems = append(problems, badNamespace(controllersKey, word, namespace)...)
			r.pauseIn(namespace, name)
		} else {
			r.controllers.Insert(name)
		}
	}
	return problems
}

func (r *Rules) addNamespaces(list string) (problems []error) {
	for _, word := range words(list) {
		problems = append(problems, badNamespace(namespacesKey, word, word)...)
		r.pauseIn(word, every)
	}
	return problems
}

func (r *Rules) pauseIn(namespace, controller string) {
	if r.in[namespace] == nil {
		r.in[namespace] = sets.New[string]()
	}
	r.in[namespace].Insert(controller)
}

func badNamespace(key, word, namespace string) (problems []error) {
	for _, problem := range validation.IsDNS1123Label(namespace) {
		problems = append(problems, fmt.Errorf("%s: %q: %q is not the name of a namespace: %s", key, word, namespace, problem))
	}
	return problems
}

// words are what commas and white space separate.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
}

// short is text for one line.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > longestReason {
		return string(runes[:longestReason]) + " ..."
	}
	return text
}

// Paused returns why a controller does not write in a namespace; empty if it may. The
// namespace is empty for objects without one.
func (r Rules) Paused(controller, namespace string) string {
	in := r.in[namespace]
	switch {
	case r.controllers.Has(every):
		return r.because("every controller is paused")
	case r.controllers.Has(controller):
		return r.because(controller + " is paused")
	case in.Has(every):
		return r.because("namespace " + namespace + " is paused")
	case in.Has(controller):
		return r.because(controller + " is paused in namespace " + namespace)
	}
	return ""
}

func (r Rules) because(what string) string {
	what += " by " + r.by
	if r.reason != "" {
		what += ": " + r.reason
	}
	return what
}

// empty reports whether nothing is paused.
func (r Rules) empty() bool { return r.controllers.Len() == 0 && len(r.in) == 0 }

// same reports whether both pause the same for the same reason.
func (r Rules) same(other Rules) bool { return r.String() == other.String() }

// String says what is paused, in a sentence for an event.
func (r Rules) String() string {
	var parts []string
	switch {
	case r.empty():
		return "nothing is paused"
	case r.controllers.Has(every):
		parts = append(parts, "every controller")
	case r.controllers.Len() > 0:
		parts = append(parts, strings.Join(sets.List(r.controllers), ", "))
	}
	for _, namespace := range slices.Sorted(maps.Keys(r.in)) {
		who := strings.Join(sets.List(r.in[namespace]), ", ")
		if r.in[namespace].Has(every) {
			who = "every controller"
		}
		parts = append(parts, who+" in namespace "+namespace)
	}
	said := strings.Join(parts, "; ")
	if r.reason != "" {
		said += " (" + r.reason + ")"
	}
	return said
}
