package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

var kind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

func owner(uid string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: types.UID(uid)}}
}

func pod(app string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "pod", Labels: map[string]string{"app": app}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func ownedBy(o *appsv1.ReplicaSet) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(o, kind)} }
}

func deleted(p *corev1.Pod)   { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func elsewhere(p *corev1.Pod) { p.Namespace = "other" }

func TestClaim(t *testing.T) {
	dying := owner("1")
	dying.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, tc := range map[string]struct {
		owner *appsv1.ReplicaSet
		child *corev1.Pod
		want  string
	}{
		"its own that matches is kept":                      {owner("1"), pod("web", ownedBy(owner("1"))), "owned"},
		"its own that is being deleted is kept":             {owner("1"), pod("web", ownedBy(owner("1")), deleted), "owned"},
		"its own that no longer matches is released":        {owner("1"), pod("db", ownedBy(owner("1"))), "release"},
		"an orphan that matches is adopted":                 {owner("1"), pod("web"), "adopt"},
		"an orphan that does not match is ignored":          {owner("1"), pod("db"), ""},
		"an orphan that is being deleted is ignored":        {owner("1"), pod("web", deleted), ""},
		"an orphan of another namespace is ignored":         {owner("1"), pod("web", elsewhere), ""},
		"another's child is ignored though it matches":      {owner("1"), pod("web", ownedBy(owner("2"))), ""},
		"its own of another namespace is no child":          {owner("1"), pod("web", ownedBy(owner("1")), elsewhere), ""},
		"nor is it released when it does not match":         {owner("1"), pod("db", ownedBy(owner("1")), elsewhere), ""},
		"a dying owner keeps what matches":                  {dying, pod("web", ownedBy(dying)), "owned"},
		"a dying owner adopts nothing":                      {dying, pod("web"), ""},
		"a dying owner releases nothing":                    {dying, pod("db", ownedBy(dying)), ""},
		"a child of a namesake with another UID is ignored": {owner("1"), pod("db", ownedBy(owner("old"))), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := Claim(tc.owner, labels.SelectorFromSet(labels.Set{"app": "web"}), []*corev1.Pod{tc.child})
			got := ""
			switch {
			case len(c.Owned) == 1:
				got = "owned"
			case len(c.Adopt) == 1:
				got = "adopt"
			case len(c.Release) == 1:
				got = "release"
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRecheckReadsLiveOnceAndRefusesAnotherOwner(t *testing.T) {
	dying := owner("1")
	dying.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, tc := range map[string]struct {
		live *appsv1.ReplicaSet
		err  error
		ok   bool
	}{
		"the same owner":    {live: owner("1"), ok: true},
		"recreated":         {live: owner("2")},
		"being deleted":     {live: dying},
		"it cannot be read": {live: owner("1"), err: errors.New("down")},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			check := Recheck(owner("1"), func(context.Context) (metav1.Object, error) { reads++; return tc.live, tc.err })
			for range 3 {
				if err := check(t.Context()); (err == nil) != tc.ok {
					t.Errorf("err %v, want ok %t", err, tc.ok)
				}
			}
			if reads != 1 {
				t.Errorf("%d live reads, want 1", reads)
			}
		})
	}
}

func TestPatchesAdoptAndRelease(t *testing.T) {
	apply := func(t *testing.T, p *corev1.Pod, patch []byte, err error) *corev1.Pod {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		before, _ := json.Marshal(p)
		after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		out := &corev1.Pod{}
		if err := json.Unmarshal(after, out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	patch, err := AdoptPatch("pod", owner("1"), kind, "example.com/hold")
	adopted := apply(t, pod("web"), patch, err)
	if ref := metav1.GetControllerOf(adopted); ref == nil || ref.UID != "1" || !*ref.BlockOwnerDeletion || ref.Kind != "ReplicaSet" {
		t.Errorf("adopted with %+v", ref)
	}
	if len(adopted.Finalizers) != 1 {
		t.Errorf("finalizers %v", adopted.Finalizers)
	}
	adopted.OwnerReferences = append(adopted.OwnerReferences, metav1.OwnerReference{UID: "9", Name: "other", Kind: "X", APIVersion: "v1"})
	patch, err = ReleasePatch("pod", "1", "example.com/hold")
	released := apply(t, adopted, patch, err)
	if len(released.OwnerReferences) != 1 || released.OwnerReferences[0].UID != "9" || len(released.Finalizers) != 0 {
		t.Errorf("released with %+v %v", released.OwnerReferences, released.Finalizers)
	}
}
