package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// emptying is one pass over the content of a namespace: pods first, then one kind after
// the other, and at the end its status.
type emptying struct {
	observed
	now        time.Time // when it began
	pods, rest []resource
}

// empty deletes the content of a namespace that is known, as far as it goes in one pass.
func empty(o observed, now time.Time) act.Plan {
	e := emptying{observed: o, now: now}
	e.pods, e.rest = podsOf(o.found.known.resources)
	return e.deletion(e.pods, nil, e.afterPods)
}

func (e emptying) afterPods(so act.Results) act.Plan {
	if e.outcome(so).podsFirst {
		return e.finish(so)
	}
	return e.deletion(e.rest, so, e.finish)
}

// deletion deletes what is held of these kinds, whatever becomes of the others.
func (e emptying) deletion(kinds []resource, so act.Results, then func(act.Results) act.Plan) act.Plan {
	var parts []act.Step
	objects := 0
	for _, r := range kinds {
		if t, held := e.found.held[r.gvr]; held || e.unlisted(r) {
			parts = append(parts, e.part(r, t))
			objects += t.count
		}
	}
	if len(parts) == 0 {
		return then(so)
	}
	return act.Plan{
		Why:    fmt.Sprintf("%d objects of %d kinds are deleted, of %d kinds that are served", objects, len(parts), len(e.found.known.resources)),
		Stages: []act.Stage{act.EachInTurn(parts...)}, Then: then, Else: then,
		Note: func(so act.Results) any {
			n := notes{uid: e.live.UID}
			for _, r := range kinds {
				if _, held := e.found.held[r.gvr]; held {
					n.kinds = append(n.kinds, e.came(r, so))
				}
			}
			return n
		},
	}
}

// unlisted reports whether a kind is deleted on trust: what cannot be listed cannot be
// waited for.
func (e emptying) unlisted(r resource) bool {
	return !r.list && r.deleteCollection && r.gvr != podResource
}

// part deletes the objects of a kind that a list has shown, and lists what is
// left. Those that were on their way out already may have gone since.
func (e emptying) part(r resource, t tally) act.Part {
	p := act.Part{Of: e.of(r), Then: func(so act.Results) []act.Stage { return e.next(r, so) }}
	switch {
	case r.gvr == podResource:
		inSpace := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.live.Name}}
		p.Stages = act.Stages(act.List{Of: inSpace, Keep: keepTally})
	case r.list && t.open == 0:
		p.Stages = e.count(r)
	default:
		p.Stages = e.remove(r)
	}
	return p
}

// next is what follows from what became of a kind so far.
func (e emptying) next(r resource, so act.Results) []act.Stage {
	last := so[len(so)-1]
	switch last.Step.(type) {
	case act.DeleteAll:
		switch {
		case !r.list:
			return nil
		case last.Err == nil:
			return e.count(r)
		case unserved(last.Err): // one by one, then; what is left, a list says
			return e.find(r)
		}
	case act.Delete:
		if deletionErr(so) == nil {
			return e.count(r)
		}
	case act.List:
		switch kept := last.Kept.(type) {
		case open:
			if len(kept) == 0 {
				return e.count(r)
			}
			return e.removeEach(kept)
		case tally:
			if kept.open > 0 && !tried(so) {
				return e.remove(r)
			}
		}
	}
	return nil
}

// tried reports whether the objects of a kind have been deleted in this pass.
func tried(so act.Results) bool {
	for _, result := range so {
		_, found := result.Kept.(open)
		if _, all := result.Step.(act.DeleteAll); all || found {
			return true
		}
	}
	return false
}

// of is an object of a kind in the namespace.
func (e emptying) of(r resource) *metav1.PartialObjectMetadata {
	return act.InResource(r.gvr, e.live.Name, "")
}

func (e emptying) count(r resource) []act.Stage {
	return act.Stages(act.List{Of: e.of(r), Limit: pageSize, Within: readTimeout, Keep: keepTally})
}

// remove deletes in the background: dependents are in the same namespace and go by
// themselves, so that nobody has to wait for the garbage collector.
func (e emptying) remove(r resource) []act.Stage {
	if !r.deleteCollection {
		return e.find(r)
	}
	return act.Stages(act.DeleteAll{Of: e.of(r), Propagation: metav1.DeletePropagationBackground})
}

// find lists what has to be deleted one by one.
func (e emptying) find(r resource) []act.Stage {
	return act.Stages(act.List{Of: e.of(r), Limit: pageSize, Within: readTimeout, Keep: func(kept any, page client.ObjectList) any {
		found, _ := kept.(open)
		list, _ := page.(*metav1.PartialObjectMetadataList)
		for i := range list.Items {
			if listed := &list.Items[i]; needDeleting(listed) {
				o := act.InResource(r.gvr, e.live.Name, listed.Name)
				o.UID = listed.UID
				found = append(found, o)
			}
		}
		return found
	}})
}

func (e emptying) removeEach(found open) []act.Stage {
	steps := make([]act.Step, 0, len(found))
	for _, o := range found {
		steps = append(steps, act.Delete{Of: o, Propagation: metav1.DeletePropagationBackground, Listed: true})
	}
	return act.Stages(steps...)
}

// open are objects that a deletion would change.
type open []*metav1.PartialObjectMetadata

// keepTally counts what a page shows; pods are listed whole, for their grace periods.
func keepTally(kept any, page client.ObjectList) any {
	t, _ := kept.(tally)
	switch list := page.(type) {
	case *metav1.PartialObjectMetadataList:
		t.addAll(list)
	case *corev1.PodList:
		for i := range list.Items {
			t.add(&list.Items[i])
		}
		t.grace = max(t.grace, longestGrace(list.Items))
	}
	return t
}

// came is what came of the deletion of a kind: what is left, how many seconds it may
// take, or why that is not known.
type came struct {
	resource
	tally
	err error
}

// silent reports whether a kind does not answer, so that it is left to the probes.
func (c came) silent() bool {
	return c.err != nil && !errors.Is(c.err, context.Canceled) && !withheld(c.err) && unreachable(c.err)
}

// unserved reports whether a kind is answered as if it were not served.
func (c came) unserved() bool { return c.err != nil && unserved(c.err) }

// came returns what came of a kind. What nobody listed after all is not known; where the
// deletion was withheld, it is as it was.
func (e emptying) came(r resource, all act.Results) came {
	c, so := came{resource: r, err: errNotRead}, about(r, all)
	for _, result := range so {
		if t, is := result.Kept.(tally); is {
			t.grace = max(c.grace, graceLeft(t.grace, e.live.DeletionTimestamp.Time, result.At))
			c.tally, c.err = t, nil
		}
	}
	if err := deletionErr(so); err != nil {
		c.err = err
	}
	if withheld(c.err) && c.count == 0 {
		c.tally = e.found.held[r.gvr]
	}
	return c
}

// about returns the results of the steps about a kind.
func about(r resource, all act.Results) act.Results {
	return slices.DeleteFunc(slices.Clone(all), func(result act.Result) bool { return resourceOf(result.Step.About()) != r.gvr })
}

// deletionErr returns why a kind was not deleted or not listed. That a collection, or
// an object, cannot be deleted in this way is no reason: a list says what is left.
func deletionErr(so act.Results) error {
	for _, result := range so {
		switch result.Step.(type) {
		case act.DeleteAll:
			if unserved(result.Err) {
				continue
			}
		case act.Delete:
			if apierrors.IsMethodNotSupported(result.Err) {
				continue
			}
		}
		if result.Err != nil {
			return result.Err
		}
	}
	return nil
}

func withheld(err error) bool { return consistency.WasWithheld(err) != nil }

func resourceOf(o client.Object) schema.GroupVersionResource {
	if _, is := o.(*corev1.Pod); is {
		return podResource
	}
	return act.ResourceOf(o)
}
