package namespace

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// knowing returns a namespace that was just listed, with these findings.
func knowing(held map[schema.GroupVersionResource]tally, change func(*observed)) observed {
	o := observed{cached: ending(nil), live: ending(nil), surveyed: true, resync: 5 * time.Minute, found: findings{
		known: &catalog{resources: []resource{configMaps, pods, widgets}}, until: noon.Add(fresh), held: held,
	}}
	if change != nil {
		change(&o)
	}
	return o
}

type held = map[schema.GroupVersionResource]tally

func TestPlan(t *testing.T) {
	one := tally{count: 1, open: 1}
	for name, tc := range map[string]struct {
		o          observed
		wants, why string
		again      time.Duration
		notes      string
	}{
		"one that is not to be emptied": {observed{}, "", "not terminating, or emptied already", 0, ""},
		"one that no survey has seen": {knowing(nil, func(o *observed) { o.surveyed = false }), "",
			"waiting for the next list of all resources", 5 * time.Minute, "survey"},
		"one that was seen too long ago": {knowing(nil, func(o *observed) { o.found.until = noon.Add(-1) }), "",
			"nothing is left, but the lists are too old: reading again", 5 * time.Minute, "renew survey"},
		"what it holds comes before that": {knowing(held{widgets.gvr: one}, func(o *observed) { o.found.until = noon.Add(-1) }), "do PartialObjectMetadata",
			"1 objects of 1 kinds are deleted, of 3 kinds that are served", 0, ""},
		"one that is gone live":  {knowing(nil, func(o *observed) { o.live = nil }), "", "not terminating, or emptied already", settle, ""},
		"one that holds nothing": {knowing(nil, nil), "report Namespace team", "nothing is left", 0, ""},
		"pods come first": {knowing(held{podResource: one, widgets.gvr: one}, nil), "do PartialObjectMetadata",
			"1 objects of 1 kinds are deleted, of 3 kinds that are served", 0, ""},
		"then all else, side by side for none": {knowing(held{configMaps.gvr: {count: 2}, widgets.gvr: one}, nil), "do PartialObjectMetadata, do PartialObjectMetadata",
			"3 objects of 2 kinds are deleted, of 3 kinds that are served", 0, ""},
		"pods that cannot be read hold all else": {knowing(held{widgets.gvr: one}, func(o *observed) {
			o.found.unread = map[schema.GroupVersionResource]failure{podResource: {err: errDown}}
		}), "", "0 objects of 0 kinds are left, pods before all else; 1 kinds cannot be read or deleted", 5 * time.Minute, ""},
		"kinds that are new are looked at": {knowing(nil, func(o *observed) { o.found.more = true }), "", "the kinds of objects have changed", 5 * time.Minute, "look"},
		"discovery is not complete": {knowing(nil, func(o *observed) { o.found.known.incomplete = errDown }), "",
			"0 objects of 0 kinds are left; discovery is not complete", 5 * time.Minute, ""},
		"a look wakes those that can go on": {observed{looked: &looked{namespaces: 2, kinds: 3, lists: 1, wake: []string{"a"}, blocked: true,
			unread: map[string]string{"widgets.example.com": "down"}}}, "",
			"1 kinds of 3 were listed for 2 namespaces; 1 can go on; widgets.example.com cannot be read: down", 0, "probe a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(tc.o, noon)
			if got := fixture.Planned(p); got != tc.wants || p.Why != tc.why || p.RequeueAfter != tc.again {
				t.Errorf("wants %q because %q, again after %v", got, p.Why, p.RequeueAfter)
			}
			if got := noted(p); got != tc.notes {
				t.Errorf("notes %q", got)
			}
		})
	}
}

// noted are the notes of a plan, in words.
func noted(p act.Plan) string {
	if p.Note == nil {
		return ""
	}
	n, _ := p.Note(nil).(notes)
	var words []string
	for word, is := range map[string]bool{"renew": n.renew, "probe": n.probe} {
		if is {
			words = append(words, word)
		}
	}
	for _, key := range n.wake {
		words = append(words, strings.NewReplacer(surveyKey, "survey", probeKey, "look").Replace(key))
	}
	return strings.Join(words, " ")
}

func TestWhatFollowsForAKind(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "w", errors.New("policy"))
	all := func(err error) act.Result { return act.Result{Step: act.DeleteAll{}, Err: err} }
	one := func(err error) act.Result { return act.Result{Step: act.Delete{}, Err: err} }
	list := func(kept any) act.Result { return act.Result{Step: act.List{}, Kept: kept} }
	w := act.InResource(widgets.gvr, "team", "w")
	for name, tc := range map[string]struct {
		so   act.Results
		want string
	}{
		"a collection that was deleted is counted":     {act.Results{all(nil)}, "list "},
		"one that cannot be deleted is, one by one":    {act.Results{all(notAllowed)}, "list "},
		"one that is refused is left":                  {act.Results{all(refusal)}, ""},
		"what was found is deleted":                    {act.Results{all(notAllowed), list(open{w, w})}, "delete w, delete w"},
		"when nothing was found, it is counted":        {act.Results{list(open{})}, "list "},
		"what was deleted is counted":                  {act.Results{list(open{w}), one(nil)}, "list "},
		"and so is what cannot be deleted in this way": {act.Results{list(open{w}), one(notAllowed)}, "list "},
		"a refusal ends it":                            {act.Results{list(open{w, w}), one(refusal), {Step: act.Delete{}, Became: act.NotBegun}}, ""},
		"what came back since is deleted":              {act.Results{list(tally{count: 1, open: 1})}, "deletecollection "},
		"what is on its way out is left":               {act.Results{list(tally{count: 1})}, ""},
		"what was deleted is not deleted again":        {act.Results{all(nil), list(tally{count: 1, open: 1})}, ""},
		"one by one neither":                           {act.Results{list(open{}), list(tally{count: 1, open: 1})}, ""},
		"a list that fails ends it":                    {act.Results{{Step: act.List{}, Became: act.Refused, Err: refusal}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := emptying{observed: knowing(nil, nil)}
			var steps []string
			for _, stage := range e.next(configMaps, tc.so) {
				for _, step := range stage.Steps {
					steps = append(steps, step.Verb()+" "+step.About().GetName())
				}
			}
			if got := strings.Join(steps, ", "); got != tc.want {
				t.Errorf("follows %q", got)
			}
		})
	}
}

func TestWhatCameOfAKind(t *testing.T) {
	about := act.InResource(widgets.gvr, "team", "")
	other := act.Result{Step: act.List{Of: act.InResource(configMaps.gvr, "team", "")}, Kept: tally{count: 7}}
	counted := act.Result{Step: act.List{Of: about}, Kept: tally{count: 1}}
	for name, tc := range map[string]struct {
		so   act.Results
		want string
	}{
		"what a list has counted":                 {act.Results{counted, other}, "1 left, <nil>"},
		"what nobody has listed is not known":     {act.Results{other}, "0 left, not read yet"},
		"what was not begun is not known":         {act.Results{{Step: act.DeleteAll{Of: about}, Became: act.NotBegun}, other}, "0 left, not read yet"},
		"an error counts more than a list":        {act.Results{counted, {Step: act.Delete{Of: about}, Err: errDown}}, "1 left, down"},
		"no collection can be deleted: no matter": {act.Results{{Step: act.DeleteAll{Of: about}, Err: notAllowed}, counted}, "1 left, <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			c := emptying{observed: knowing(nil, nil)}.came(widgets, tc.so)
			if got := fmt.Sprintf("%d left, %v", c.count, c.err); got != tc.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestFinalizingHasAnEnd(t *testing.T) {
	p, tries := finalizing(ending(nil), finalizeTries), 1
	for p.Afresh != nil {
		tries++
		p = p.Afresh(ending(func(ns *corev1.Namespace) { ns.ResourceVersion = fmt.Sprint(tries) }))
	}
	if tries != finalizeTries {
		t.Errorf("%d tries", tries)
	}
	if p := finalizing(ending(nil), 2).Afresh(ending(func(ns *corev1.Namespace) { ns.UID = "new" })); len(p.Stages) > 0 {
		t.Errorf("another namespace is finalized: %s", fixture.Planned(p))
	}
}

func TestTheGracePeriodOfPodsCountsWhenTheyWereListed(t *testing.T) {
	inSpace := &corev1.Pod{}
	first := act.Result{Step: act.List{Of: inSpace}, Kept: tally{count: 2, open: 2, grace: 30}, At: noon.Add(10 * time.Second)}
	left := act.Result{Step: act.List{Of: act.InResource(podResource, "team", "")}, Kept: tally{count: 1}, At: noon.Add(time.Minute)}
	e := emptying{observed: knowing(nil, nil)} // terminating since ten seconds before noon
	if c := e.came(pods, act.Results{first, left}); c.grace != 30 || c.count != 1 || c.err != nil {
		t.Errorf("%d left, grace %d, %v", c.count, c.grace, c.err)
	}
	first.At = noon.Add(20 * time.Second)
	if c := e.came(pods, act.Results{first, left}); c.grace != 0 {
		t.Errorf("what has passed counts: %d", c.grace)
	}
}

// A definition may be deleted with the namespace that has the last objects of its kind.
func TestAKindThatIsServedNoMoreWhenItComesToDeletingHoldsNothing(t *testing.T) {
	p := newPlace(t, ending(nil), object("widgets", "w"))
	p.sync(t.Context(), "team")
	p.sync(t.Context(), surveyKey)
	odd := -1
	p.answer("*", "widgets", &odd, notServed, func(clienttesting.Action) bool {
		p.lists = p.lists[:1]
		return true
	})
	p.requests()
	if got := p.sync(t.Context(), "team"); got.Err() != nil || p.finalized() {
		t.Errorf("finalized before discovery was asked, or failed: %v", got.Err())
	}
	if got := p.sync(t.Context(), "team"); got.Err() != nil || p.discovered != 2 {
		t.Errorf("%v, discovery was made %d times", got.Err(), p.discovered)
	}
	if diff := cmp.Diff([]string{"get namespaces", "update namespaces/status", "update namespaces/finalize", "list widgets"}, p.requests()); diff != "" {
		t.Error(diff)
	}
	if got := p.conditions(t); got != "" {
		t.Errorf("conditions %s", got)
	}
}

func TestDeletionsCarryTheUID(t *testing.T) {
	o := object("widgets", "w")
	o.UID = "u-1"
	p := newPlace(t, ending(nil), o, object("widgets", "x"))
	p.pass(t.Context())
	var guarded []string
	for _, action := range p.meta.Actions() {
		if d, is := action.(clienttesting.DeleteAction); is {
			options := d.GetDeleteOptions()
			guard := "none"
			if options.Preconditions != nil {
				guard = string(*options.Preconditions.UID)
			}
			guarded = append(guarded, d.GetName()+" "+guard+" "+string(*options.PropagationPolicy))
		}
	}
	background := string(metav1.DeletePropagationBackground)
	if diff := cmp.Diff([]string{"w u-1 " + background, "x none " + background}, guarded); diff != "" {
		t.Error(diff)
	}
}
