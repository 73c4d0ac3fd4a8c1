package garbagecollector

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func had(uid types.UID, s standing) owner { return owner{metav1.OwnerReference{UID: uid}, s} }

func TestDecide(t *testing.T) {
	const (
		dropsA    = `patch PartialObjectMetadata o {"metadata":{"uid":"o","ownerReferences":[{"$patch":"delete","uid":"a"}]}}`
		unblocksA = `patch PartialObjectMetadata o {"metadata":{"uid":"o","resourceVersion":"7","ownerReferences":[{"apiVersion":"","kind":"","name":"","uid":"a","blockOwnerDeletion":false}]}}`
		deletes   = "delete PartialObjectMetadata o unchanged "
	)
	for name, tc := range map[string]struct {
		finalizers           []string
		owners               []owner
		dependents, deleting bool
		want, then           string
	}{
		"an object without an owner stays":        {},
		"one whose owners are there stays":        {owners: []owner{had("a", solid), had("b", solid)}},
		"one owner that is there keeps it":        {owners: []owner{had("a", dangling), had("b", solid)}, want: dropsA},
		"an owner that waits is not kept waiting": {owners: []owner{had("a", waiting), had("b", solid)}, want: dropsA},
		"a right reference saves a wrong one of the same owner": {
			owners: []owner{had("a", dangling), had("a", solid)}},
		"without owners it goes": {owners: []owner{had("a", dangling)}, want: deletes + "Background"},
		"it goes in the way its finalizers ask for": {
			finalizers: []string{metav1.FinalizerOrphanDependents}, owners: []owner{had("a", dangling)}, want: deletes + "Orphan"},
		"or in the other": {
			finalizers: []string{metav1.FinalizerDeleteDependents}, owners: []owner{had("a", dangling)}, want: deletes + "Foreground"},
		"for an owner that waits, its dependents go first": {
			owners: []owner{had("a", waiting), had("b", dangling)}, dependents: true, want: deletes + "Foreground"},
		"in a cycle it holds nobody up": {
			owners: []owner{had("a", waiting)}, dependents: true, deleting: true, want: unblocksA, then: deletes + "Foreground"},
		"for an owner that waits it goes at once if it has none": {
			owners: []owner{had("a", waiting)}, want: deletes + "Background"},
		"dependents do not matter when all owners are gone": {
			owners: []owner{had("a", dangling)}, dependents: true, want: deletes + "Background"},
	} {
		t.Run(name, func(t *testing.T) {
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "o", UID: "o", ResourceVersion: "7", Finalizers: tc.finalizers}}
			for _, o := range tc.owners {
				live.OwnerReferences = append(live.OwnerReferences, blocking(o.ref))
			}
			p := decide(live, tc.owners, tc.dependents, tc.deleting)
			if got := fixture.Planned(p); p.Why == "" || got != tc.want {
				t.Errorf("plans %s because %q", got, p.Why)
			}
			if (p.Then != nil) != (tc.then != "") {
				t.Fatal("goes on")
			}
			if p.Then == nil {
				return
			}
			if got := fixture.Planned(p.Then(act.Results{{Became: act.Done, Object: live}})); got != tc.then {
				t.Errorf("goes on with %s", got)
			}
		})
	}
}

func TestADeletionSaysForWhom(t *testing.T) {
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "o", UID: "o"}}
	for want, owners := range map[string][]owner{
		"its 2 owners are gone": {had("a", dangling), had("b", dangling)},
		"1 owners wait for it":  {had("a", dangling), had("b", waiting)},
		"an owner is there, 1 others are gone or wait for it to go": {had("a", dangling), had("b", solid)},
	} {
		if got := decide(live, owners, false, false).Why; got != want {
			t.Errorf("because %q, want %q", got, want)
		}
	}
}

func TestAFinalizerIsTakenOffWhatHasItAndIsDeleted(t *testing.T) {
	patch := finish(named("a", "o"), "f", "").Stages[0].Steps[0].(act.Patch)
	for name, tc := range map[string]struct {
		now  *metav1.PartialObjectMetadata
		want bool
	}{
		"it has it, and is being deleted": {leaving(named("a", "o"), "f"), true},
		"it has another":                  {leaving(named("a", "o"), "x"), false},
		"it is not being deleted":         {&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"f"}}}, false},
	} {
		if got := patch.AsRead(tc.now); (got != nil) != tc.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestPatches(t *testing.T) {
	yes, no := true, false
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "7", Finalizers: []string{"a", "orphan"}, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "K", Name: "x", UID: "1", BlockOwnerDeletion: &yes}, {APIVersion: "v1", Kind: "K", Name: "y", UID: "2", BlockOwnerDeletion: &no}}}}
	const x, y = `{"apiVersion":"v1","kind":"K","name":"x","uid":"1","blockOwnerDeletion":`, `{"apiVersion":"v1","kind":"K","name":"y","uid":"2","blockOwnerDeletion":false}`
	for name, tc := range map[string]struct {
		got  []byte
		want string
	}{
		"strategic":       {withoutOwners("u", []types.UID{"1"}), `{"metadata":{"uid":"u","ownerReferences":[{"$patch":"delete","uid":"1"}]}}`},
		"merged":          {keepingOwners(live, []types.UID{"1"}), `{"metadata":{"uid":"u","resourceVersion":"7","ownerReferences":[` + y + `]}}`},
		"the last owner":  {keepingOwners(live, []types.UID{"1", "2"}), `{"metadata":{"uid":"u","resourceVersion":"7","ownerReferences":[]}}`},
		"unblocked":       {unblocked(live), `{"metadata":{"uid":"u","resourceVersion":"7","ownerReferences":[` + x + `false},` + y + `]}}`},
		"a finalizer":     {withoutFinalizer(live, "orphan"), `{"metadata":{"uid":"u","resourceVersion":"7","finalizers":["a"]}}`},
		"of the original": {keepingOwners(live, nil), `{"metadata":{"uid":"u","resourceVersion":"7","ownerReferences":[` + x + `true},` + y + `]}}`},
	} {
		if string(tc.got) != tc.want {
			t.Errorf("%s: got %s, want %s", name, tc.got, tc.want)
		}
	}
}

func TestStateOf(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		deleted    bool
		finalizers []string
		want       state
	}{
		"a finalizer alone is not a deletion":         {false, []string{metav1.FinalizerDeleteDependents}, state{}},
		"it is being deleted":                         {true, []string{"other"}, state{terminating: true}},
		"it waits for its dependents":                 {true, []string{metav1.FinalizerDeleteDependents}, state{terminating: true, foreground: true}},
		"it is to be parted from them":                {true, []string{metav1.FinalizerOrphanDependents}, state{terminating: true, orphaning: true}},
		"with both, what is to be kept is kept first": {true, []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents}, state{terminating: true, orphaning: true}},
	} {
		o := &metav1.ObjectMeta{Finalizers: tc.finalizers}
		if tc.deleted {
			o.DeletionTimestamp = &now
		}
		if got := stateOf(o); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}
