package garbagecollector

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func had(uid types.UID, s standing) owner { return owner{metav1.OwnerReference{UID: uid}, s} }

func TestDecide(t *testing.T) {
	const background, foreground, orphan = metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan
	for name, tc := range map[string]struct {
		finalizers           []string
		owners               []owner
		dependents, deleting bool
		want                 decision
	}{
		"an object without an owner stays":        {want: decision{Do: nothing}},
		"one whose owners are there stays":        {owners: []owner{had("a", solid), had("b", solid)}, want: decision{Do: nothing}},
		"one owner that is there keeps it":        {owners: []owner{had("a", dangling), had("b", solid)}, want: decision{Do: disown, Drop: []types.UID{"a"}}},
		"an owner that waits is not kept waiting": {owners: []owner{had("a", waiting), had("b", solid)}, want: decision{Do: disown, Drop: []types.UID{"a"}}},
		"a right reference saves a wrong one of the same owner": {
			owners: []owner{had("a", dangling), had("a", solid)}, want: decision{Do: nothing}},
		"without owners it goes": {owners: []owner{had("a", dangling)}, want: decision{Do: collect, Policy: background}},
		"it goes in the way its finalizers ask for": {
			finalizers: []string{metav1.FinalizerOrphanDependents}, owners: []owner{had("a", dangling)}, want: decision{Do: collect, Policy: orphan}},
		"or in the other": {
			finalizers: []string{metav1.FinalizerDeleteDependents}, owners: []owner{had("a", dangling)}, want: decision{Do: collect, Policy: foreground}},
		"for an owner that waits, its dependents go first": {
			owners: []owner{had("a", waiting), had("b", dangling)}, dependents: true, want: decision{Do: collect, Policy: foreground}},
		"in a cycle it holds nobody up": {
			owners: []owner{had("a", waiting)}, dependents: true, deleting: true, want: decision{Do: collect, Policy: foreground, Unblock: true}},
		"for an owner that waits it goes at once if it has none": {
			owners: []owner{had("a", waiting)}, want: decision{Do: collect, Policy: background}},
		"dependents do not matter when all owners are gone": {
			owners: []owner{had("a", dangling)}, dependents: true, want: decision{Do: collect, Policy: background}},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(&metav1.ObjectMeta{Finalizers: tc.finalizers}, tc.owners, tc.dependents, tc.deleting)
			if got.Why == "" {
				t.Error("no reason is given")
			}
			if got.Do != tc.want.Do || got.Policy != tc.want.Policy || got.Unblock != tc.want.Unblock || !slices.Equal(got.Drop, tc.want.Drop) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
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
