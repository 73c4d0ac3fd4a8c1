package shadow

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// wish is what a plan would write.
type wish struct {
	controller string
	// what is the verb and the kind.
	what sort
	// object is what it is about, as people write it.
	object string
	// content stands for what would be written, without times; version for the state of
	// the object that it was decided by.
	content, version string
	// mark is that of a write of the running manager that does the same; the zero value if
	// nobody could see that.
	mark mark
}

// sort is what kind of a write it is.
type sort struct{ Verb, Kind string }

func (s sort) String() string { return s.Verb + " " + s.Kind }

// same is what two wishes have in common that are about the same.
type same struct {
	controller, object string
	what               sort
}

func (w wish) same() same { return same{w.controller, w.object, w.what} }

// The verbs of wishes.
const (
	creates   = "create"
	statuses  = "status"
	updates   = "update"
	deletes   = "delete"
	deleteAll = "deletecollection"
)

// wishOf returns what a step would write; false for what is no write to the API, or one
// whose effect nobody can see.
func wishOf(controller string, step act.Step) (wish, bool) {
	of := step.About()
	w := wish{controller: controller, what: sort{updates, act.KindOf(of)}, object: nameOf(of), version: of.GetResourceVersion()}
	switch s := step.(type) {
	case act.Create:
		w.what.Verb = creates
		w.created(s)
		return w, true
	case act.Delete:
		w.what.Verb, w.content, w.version = deletes, string(of.GetUID()), string(of.GetUID())
	case act.DeleteAll:
		w.what.Verb, w.content = deleteAll, s.Of.GetNamespace()
	case act.Status:
		wanted := s.Of.DeepCopyObject().(client.Object)
		s.Set(wanted)
		w.what.Verb, w.content = statuses, contentOf(wanted)
	case act.Update:
		w.what.Verb, w.content = verbOf(s.Subresource), contentOf(s.Object)
	case act.Patch:
		w.what.Verb, w.content = verbOf(s.Subresource), digest(s.Data)
	case act.Apply:
		w.what.Verb, w.content = verbOf(s.Subresource), contentOf(s.Configuration)
	case act.Scale:
		w.content, w.version = contentOf(s.Replicas), s.Of.GetResourceVersion()
	case act.Adopt:
		w.content = string(s.Owner.GetUID())
	case act.Release:
		w.content = "-" + string(s.Owner.GetUID())
	default:
		return wish{}, false
	}
	if w.what.Verb == statuses {
		w.mark = mark{w.what, w.object}
	}
	return w, true
}

func verbOf(subresource string) string {
	if subresource == statuses {
		return statuses
	}
	return updates
}

// created completes the wish for a new object. One with a generated name is like any
// other of its owner, and another one when the owner has changed.
func (w *wish) created(s act.Create) {
	about := w.object
	if ref := metav1.GetControllerOfNoCopy(s.Object); ref != nil {
		about = string(ref.UID)
	}
	w.mark = mark{w.what, about}
	if s.Object.GetName() != "" {
		w.content, w.version = w.object, ""
		return
	}
	if w.version = ""; s.Owner != nil {
		w.version = s.Owner.GetResourceVersion()
	}
	w.content = w.version
	for _, label := range []string{"pod-template-hash", "controller-revision-hash"} {
		w.object += s.Object.GetLabels()[label]
	}
}

// nameOf is the name of an object with its namespace, or how its name begins.
func nameOf(o client.Object) string {
	name := o.GetName()
	if name == "" {
		name = o.GetGenerateName() + "*"
	}
	return strings.TrimPrefix(o.GetNamespace()+"/"+name, "/")
}

// contentOf stands for a value, whatever times are in it.
func contentOf(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return digest(data)
}

func digest(data []byte) string {
	var value any
	if json.Unmarshal(data, &value) == nil {
		if plain, err := json.Marshal(timeless(value)); err == nil {
			data = plain
		}
	}
	sum := sha256.Sum256(data)
	return string(sum[:])
}

// timeless leaves out of a value of JSON what differs each time it is planned.
func timeless(value any) any {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "resourceVersion")
		delete(v, "managedFields")
		for name, field := range v {
			v[name] = timeless(field)
		}
	case []any:
		for i := range v {
			v[i] = timeless(v[i])
		}
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			return "a time"
		}
	}
	return value
}
