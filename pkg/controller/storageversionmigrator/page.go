package storageversionmigrator

import (
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	// pageSize is how many objects are migrated in one go; between two pages other
	// migrations have their turn, and a stop comes through.
	pageSize = 500
	// nextPage lets other migrations go first.
	nextPage = time.Millisecond
)

// place is how far a migration has come. It is not kept over a restart: what is
// stored already costs a patch that writes nothing.
type place struct {
	uid      types.UID
	target   target
	next     string
	migrated int
}

// observedPage is what the plan for a page of objects needs to know.
type observedPage struct {
	m *migration
	// at is nil while discovery does not have the resource.
	at *place
	// missed is since when it does not.
	missed time.Time
	// objects are those of the page, and next is where it goes on; nowhere if empty.
	objects []metav1.PartialObjectMetadata
	next    string
	// expired: the list has, and goes on in the present.
	expired bool
}

// planPage migrates the objects of a page.
func planPage(o observedPage, now time.Time) act.Plan {
	switch {
	case !wantsObjects(o.m):
		return act.Plan{Why: "no objects are to be migrated"}
	case o.at == nil:
		return missing(o.m, o.missed, now)
	case o.expired:
		return o.goOn("the list has expired: it continues with the current objects", o.at.migrated)
	}
	var patches []act.Step
	for i := range o.objects {
		if object := &o.objects[i]; !stored(object, o.m.Status.ResourceVersion) {
			patches = append(patches, act.Apply{
				Of: act.InResource(o.at.target.gvr, object.Namespace, object.Name), Configuration: emptyPatch(o.at.target, object),
				Manager: name, Required: true,
			})
		}
	}
	if len(patches) == 0 {
		return o.ended(nil, now)
	}
	then := func(so act.Results) act.Plan { return o.ended(so, so[len(so)-1].At) }
	return act.Plan{
		Why:    fmt.Sprintf("%d of %d objects of this page are migrated, %d were before", len(patches), len(o.objects), o.at.migrated),
		Stages: act.Stages(act.Part{Of: act.InResource(o.at.target.gvr, "", ""), Then: func(so act.Results) []act.Stage { return o.following(patches, so) }}),
		Then:   then, Else: then,
	}
}

// following takes one object after the other, up to the first that is refused for good or
// whose resource is not found. An object that is said to have changed is looked at live.
func (o observedPage) following(patches []act.Step, so act.Results) []act.Stage {
	taken := 0
	for _, result := range so {
		if _, is := result.Step.(act.Apply); is {
			taken++
		}
	}
	if len(so) > 0 {
		last := so[len(so)-1]
		if outcome, _ := outcomeAt(so, len(so)-1); apierrors.IsNotFound(last.Err) || outcome == refused {
			return nil
		}
		if _, is := last.Step.(act.Apply); is && apierrors.IsConflict(last.Err) {
			return act.Stages(o.changed(last))
		}
	}
	if taken == len(patches) {
		return nil
	}
	return act.Stages(patches[taken])
}

// changed looks whether an object has changed since it was listed, and was written with
// that: a webhook may refuse it with the same code. The role has list, and no get.
func (o observedPage) changed(answer act.Result) act.Step {
	of := answer.Step.About()
	i := slices.IndexFunc(o.objects, func(object metav1.PartialObjectMetadata) bool {
		return object.Namespace == of.GetNamespace() && object.Name == of.GetName()
	})
	return act.List{Of: of, Keep: func(_ any, page client.ObjectList) any {
		live, is := page.(*metav1.PartialObjectMetadataList)
		return is && slices.ContainsFunc(live.Items, func(live metav1.PartialObjectMetadata) bool {
			return live.UID == o.objects[i].UID && live.ResourceVersion == o.objects[i].ResourceVersion
		})
	}}
}

// outcomeAt is what an answer means, and why. The conflict before a look that has shown the
// object as it was is a refusal.
func outcomeAt(so act.Results, i int) (outcome, error) {
	if _, is := so[i].Step.(act.List); is && so[i].Kept == true {
		return refused, so[i-1].Err
	}
	return outcomeOf(so[i].Err), so[i].Err
}

// ended is what follows from what became of the objects of a page.
func (o observedPage) ended(so act.Results, now time.Time) act.Plan {
	migratedNow, again := 0, error(nil)
	for i := range so {
		switch outcome, err := outcomeAt(so, i); outcome {
		case migrated:
			if _, is := so[i].Step.(act.Apply); is {
				migratedNow++
			}
		case retry:
			again = errors.Join(again, err)
		case refused:
			return o.closed("an object was refused", failure(o.m, now, refusal(err)))
		}
	}
	all := o.at.migrated + migratedNow
	switch {
	case again != nil:
		p := o.goOn("some objects could not be written now", all)
		p.Note, p.Retry = o.moved(o.at.next, all), func(act.Results) error { return again }
		return p
	case o.next != "":
		return o.goOn("there are more objects", all)
	}
	return o.closed(fmt.Sprintf("all objects are done, %d were migrated", all), success(o.m, now))
}

// goOn comes back for the next page.
func (o observedPage) goOn(why string, all int) act.Plan {
	return act.Plan{
		Why:  fmt.Sprintf("%s: %d objects were migrated", why, all),
		Note: o.moved(o.next, all), RequeueAfter: nextPage, Retry: func(act.Results) error { return nil },
	}
}

// closed writes how the migration has ended; what was said to its objects is past.
func (o observedPage) closed(why string, m *migration) act.Plan {
	return act.Plan{
		Why: why, Stages: act.Stages(put(m)),
		Note: func(so act.Results) any {
			if so[len(so)-1].Err != nil {
				return o.at // this page comes once more, and not all
			}
			return (*place)(nil)
		},
		Retry: func(so act.Results) error { return so[len(so)-1:].Err() },
	}
}

// moved notes the place.
func (o observedPage) moved(next string, all int) func(act.Results) any {
	return func(act.Results) any { return &place{uid: o.at.uid, target: o.at.target, next: next, migrated: all} }
}
