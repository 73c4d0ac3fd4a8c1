package act

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Step is one write, or a check before one, as a value. The steps of this package are
// all there are; any other panics.
type Step interface {
	// Verb is what is done, in a word for programs; wordOf is for people.
	Verb() string
	// About is the object that is written.
	About() client.Object
}

// Create makes an object. When the answer is lost, the key waits until a live look
// has shown whether it exists.
type Create struct {
	// Object is the object to make. It belongs to the plan; the answer is put into it.
	Object client.Object
	// Owner and Siblings say where a live look finds the object when the answer was
	// lost: it is controlled by Owner and its labels match Siblings.
	Owner    metav1.Object
	Siblings labels.Selector
	// MayExist: one of that name is as good.
	MayExist bool
	// Same reports whether the live object that has the name is the very one to make, of
	// an earlier reconcile: then the key waits until the caches show it, and if MayExist is
	// set it is in the result. Of any other the outcome is Taken. Nil: a name in use is
	// refused like anything else.
	Same func(live client.Object) bool
	// EndingFails: that the namespace is being deleted is a failure like any other.
	EndingFails bool
	Events      Events
}

// Update puts an object as a whole. It must have been read live or cached whole,
// and have its resource version: the API server refuses it when there is a newer one.
type Update struct {
	// Object belongs to the plan; the answer is put into it.
	Object client.Object
	// Subresource is written in place of the object, if given.
	Subresource string
	// Required: any refusal is a failure, even if the object is gone, so that the key is
	// retried.
	Required bool
	Events   Events
}

// Patch changes some fields of the object that was observed, and of no other of its name.
type Patch struct {
	// Of is the object as it is cached; it is not changed.
	Of   client.Object
	Type types.PatchType
	// Data names the UID, so that no other object of the name is changed: see [Merge].
	Data        []byte
	Subresource string
	// AsRead returns the merge patch that does the same to the object as it is read, and names
	// its version; nil if there is nothing to do. It is for a kind that does not know patches
	// of Type, and for a conflict: the object is read and patched again then, a few times.
	// Without Data it is the patch, of Of if that has a version. It is pure.
	AsRead func(live metav1.Object) []byte
	// CalledFor reports, when the patch was refused, whether a live look at the object's
	// metadata still calls for it; if not, the refusal is no failure. Nil: it does.
	CalledFor func(live metav1.Object) bool
	// Required: any refusal is a failure, even if the object is gone, because what
	// comes after depends on the patch.
	Required bool
	// Versioned: Data names the version, so that a conflict is about this object: there is
	// no live read of whether it is gone.
	Versioned bool
	// UntilGone: it is called for as long as the object exists, also on its way out, as
	// what is said of its finalizers is. A refusal is no failure only when it is gone.
	UntilGone bool
	// MetadataOnly: no more of the answer is asked for, and the object of the result is
	// metadata.
	MetadataOnly bool
	Events       Events
}

// Apply applies a configuration on the server's side.
type Apply struct {
	// Of is the object that is meant, for the record and for what has been written.
	Of            client.Object
	Configuration runtime.ApplyConfiguration
	Manager       string
	Force         bool
	Subresource   string
	// Required: any refusal is a failure, even if the object is gone.
	Required bool
	Events   Events
}

// Ask puts a question that the API server answers and does not store, such as a
// SubjectAccessReview. The answer is the object of the result.
type Ask struct {
	// Question belongs to the plan; the answer is put into it.
	Question client.Object
}

// Delete deletes the very object that was looked at. One that is gone, or on its
// way out, is no failure; a deletion that was refused is, whatever the code.
type Delete struct {
	// Of is the object as it is cached.
	Of client.Object
	// Unchanged: it is deleted only in the version that was looked at.
	Unchanged bool
	// Holds reports whether what was planned by the version that was looked at holds for the
	// live one too, which is deleted then. It is asked on a conflict, a few times, and is for
	// Unchanged. It is pure. Nil: a conflict is like any refusal.
	Holds func(live metav1.Object) bool
	// Required: any refusal is a failure, even if the object is gone.
	Required bool
	// MayRepeat: to delete it twice does no harm, so that the key does not wait to see
	// what became of a deletion whose answer was lost.
	MayRepeat bool
	// UntilGone: one that is on its way out is to be deleted too, as without a grace
	// period. A refusal is no failure only when it is gone.
	UntilGone bool
	// Paces: the key's next status that may wait is put off by it, as by a creation.
	Paces bool
	// Optional: nothing depends on it. A failure is recorded, ends nothing and is not retried.
	Optional bool
	// Listed: what is left is listed after it, so that no live read follows a lost answer,
	// and that it was not found is no failure. One without a UID is deleted by its name.
	Listed bool
	// Propagation is what becomes of its dependents; the API's default if empty.
	Propagation metav1.DeletionPropagation
	// Grace is in seconds; the object's own if nil.
	Grace  *int64
	Events Events
}

// Adopt makes Owner the controller of Child, if a live look shows that Owner is
// there still and is not being deleted.
type Adopt struct {
	Child, Owner client.Object
	Kind         schema.GroupVersionKind
	// Selector is what Owner selects; a child that it does not match any more is not adopted.
	Selector labels.Selector
	// Finalizers are given to the child too.
	Finalizers []string
}

// Release takes Owner off Child.
type Release struct {
	Child, Owner client.Object
	// Finalizers are taken off the child too.
	Finalizers []string
}

// Status writes the status of an object.
type Status struct {
	// Of is the object as it is cached; it is not changed.
	Of client.Object
	// Set puts the status into a copy. It is pure.
	Set func(client.Object)
	// Again: on a conflict it is put once more, into the object as it is then, because
	// what is reported does not depend on what has changed.
	Again bool
	// OnConflict, if given, is when to reconcile again after a conflict, which is no failure
	// then: a newer version is on its way to the caches.
	OnConflict time.Duration
	// MayWait: nothing depends on it at once, so that it may wait for the key's next status.
	MayWait bool
	// Tell are recorded once it is written.
	Tell   []Event
	Events Events
}

// Event is an event about something other than a write of the plan.
type Event struct {
	On client.Object
	// Type is Normal or Warning.
	Type, Reason, Message string
}

// Check looks live at an object before the steps of the next stage.
type Check struct {
	Of client.Object
	// Is returns what is wrong with the object's live metadata; live is nil if there is
	// none of that name. It is pure.
	Is func(live metav1.Object) error
	// IsWhole, if given, is asked in place of Is, with the whole object. It is pure.
	IsWhole func(live client.Object) error
}

// Look is a live read, before the steps of the next stage, of children that caches do
// not show, such as those of an earlier process. It fails while there are any, and the
// key waits for them.
type Look struct {
	// Owner controls the objects, and their labels match Siblings.
	Owner    client.Object
	Siblings labels.Selector
	// Kind is an empty object of their kind.
	Kind client.Object
}

// Events are those recorded of a step. With an empty reason none is. A text without
// a percent sign is recorded as it is.
type Events struct {
	// On is the object that the events are about.
	On runtime.Object
	// Done is of type Normal; its format gets the object's name.
	DoneReason, Done string
	// Failed is of type Warning; its format gets what the API server said.
	FailedReason, Failed string
	// Untold reports whether a failure gets no event. It is pure. Nil: every failure gets one.
	Untold func(error) bool
}

// wordOf is what is done as the debug page and errors say it, followed by the object.
func wordOf(s Step) string {
	switch s.(type) {
	case Status:
		return "update status of"
	case Event:
		return "record event on"
	case Look:
		return "find children of"
	}
	return s.Verb()
}

func (Create) Verb() string  { return "create" }
func (Update) Verb() string  { return "update" }
func (Patch) Verb() string   { return "patch" }
func (Apply) Verb() string   { return "apply" }
func (Ask) Verb() string     { return "ask" }
func (Delete) Verb() string  { return "delete" }
func (Adopt) Verb() string   { return "adopt" }
func (Release) Verb() string { return "release" }
func (Status) Verb() string  { return "report" }
func (Event) Verb() string   { return "tell" }
func (Check) Verb() string   { return "check" }
func (Look) Verb() string    { return "look for those of" }

func (s Create) About() client.Object  { return s.Object } // it has no name yet if that is generated
func (s Update) About() client.Object  { return s.Object }
func (s Patch) About() client.Object   { return s.Of }
func (s Apply) About() client.Object   { return s.Of }
func (s Ask) About() client.Object     { return s.Question } // it has no name
func (s Delete) About() client.Object  { return s.Of }
func (s Adopt) About() client.Object   { return s.Child }
func (s Release) About() client.Object { return s.Child }
func (s Status) About() client.Object  { return s.Of }
func (s Event) About() client.Object   { return s.On }
func (s Check) About() client.Object   { return s.Of }
func (s Look) About() client.Object    { return s.Owner }
