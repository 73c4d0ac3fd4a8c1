package resourcequota

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

var secrets = schema.GroupResource{Resource: "secrets"}

func object(name string) metav1.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func measureSecret(_ schema.GroupResource, o metav1.Object) quota.Usage {
	return quota.Rules{}.Measure(secrets, o, noon)
}

func reads(of ...schema.GroupResource) reader {
	r := reader{counts: map[schema.GroupResource]bool{}}
	for _, resource := range of {
		r.counts[resource] = true
	}
	return r
}

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }

func TestABookIsOpenedOnceAndKeptByChanges(t *testing.T) {
	l := newLedger()
	a := l.register(key("q"), reads(secrets))
	loads := 0
	load := func() ([]metav1.Object, error) { loads++; return []metav1.Object{object("a"), object("b")}, nil }
	secretsUsed := func() int64 {
		used, err := a.count(secrets, quota.Scope{}, noon, load, measureSecret)
		if err != nil {
			t.Fatal(err)
		}
		return used.sum.Name("secrets", "").Value()
	}
	changed := func(old, now metav1.Object) bool { return len(a.changed(secrets, old, now, measureSecret)) > 0 }
	if changed(nil, object("early")) {
		t.Error("nothing is to be woken before there is a book")
	}
	if got := secretsUsed(); got != 2 {
		t.Errorf("%d at first", got)
	}
	if !changed(nil, object("c")) || changed(object("c"), object("c")) {
		t.Error("a new object is a change, the same is none")
	}
	if !changed(object("a"), nil) || changed(object("z"), nil) {
		t.Error("an object that went is a change, one that was not there is none")
	}
	if got := secretsUsed(); got != 2 || loads != 1 {
		t.Errorf("%d after %d lists", got, loads)
	}
}

func TestAListThatFailsOpensNothing(t *testing.T) {
	a := newLedger().register(key("q"), reads(secrets))
	failed := errors.New("no")
	if _, err := a.count(secrets, quota.Scope{}, noon, func() ([]metav1.Object, error) { return nil, failed }, measureSecret); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if a.open(secrets) {
		t.Error("a book is open")
	}
}

func TestBooksAreClosedWhenNobodyReadsThem(t *testing.T) {
	l := newLedger()
	none := func() ([]metav1.Object, error) { return nil, nil }
	a := l.register(key("one"), reads(secrets, quota.Pods))
	l.register(key("two"), reads(secrets))
	for _, of := range []schema.GroupResource{secrets, quota.Pods} {
		if _, err := a.count(of, quota.Scope{}, noon, none, measureSecret); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.readers("ns", secrets); len(got) != 2 {
		t.Errorf("secrets are read by %v", got)
	}
	if got := l.readers("", quota.Pods); len(got) != 1 || got[0] != key("one") {
		t.Errorf("pods are read by %v", got)
	}
	if got := l.readers("other", secrets); len(got) != 0 {
		t.Errorf("elsewhere they are read by %v", got)
	}
	l.register(key("one"), reads(secrets))
	if a.open(quota.Pods) || !a.open(secrets) {
		t.Error("the book of pods should be closed, that of secrets not")
	}
	l.forget(key("one"))
	if !a.open(secrets) || l.of("ns") == nil {
		t.Error("the other quota reads secrets still")
	}
	l.forget(key("two"))
	l.forget(key("two"))
	if l.of("ns") != nil || len(l.counted()) != 0 {
		t.Error("an account is left without a quota")
	}
}

func TestBooksAgeByThePeriod(t *testing.T) {
	a := newLedger().register(key("q"), reads(secrets))
	none := func() ([]metav1.Object, error) { return nil, nil }
	if got := a.age(noon, time.Minute); got != time.Minute {
		t.Errorf("the first is due in %v", got)
	}
	if _, err := a.count(secrets, quota.Scope{}, noon, none, measureSecret); err != nil {
		t.Fatal(err)
	}
	if got := a.age(noon.Add(59*time.Second), time.Minute); got != time.Second || !a.open(secrets) {
		t.Errorf("due in %v", got)
	}
	if got := a.age(noon.Add(time.Minute), time.Minute); got != time.Minute || a.open(secrets) {
		t.Errorf("due in %v, and the book should be closed", got)
	}
	if got := a.age(noon, 0); got != 0 {
		t.Errorf("without a period it is due in %v", got)
	}
}

// A pod and the claim that was made for it use seven devices together: the claim's count
// while the pod's do not, and nobody sees them counted twice or not at all.
func TestAClaimIsMeasuredTogetherWithItsPod(t *testing.T) {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "made",
		Annotations:     map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "p", UID: "u", Controller: ptr.To(true)}}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}}
	a := newLedger().register(key("q"), reads(quota.Pods, quota.DeviceClaims))
	alive := true
	measure := func(of schema.GroupResource, _ metav1.Object) quota.Usage {
		if of == quota.DeviceClaims && alive {
			return quota.Usage{}
		}
		return quota.Usage{Used: list("requests.example.com/gpu=7")}
	}
	used := func() int64 {
		var sum int64
		for of, objects := range map[schema.GroupResource][]metav1.Object{quota.Pods: {pod}, quota.DeviceClaims: {claim}} {
			is, err := a.count(of, quota.Scope{}, noon, func() ([]metav1.Object, error) { return objects, nil }, measure)
			if err != nil {
				t.Fatal(err)
			}
			sum += is.sum.Name("requests.example.com/gpu", "").Value()
		}
		return sum
	}
	if got := used(); got != 7 {
		t.Errorf("%d devices with a pod", got)
	}
	alive = false
	if got := a.changed(quota.Pods, pod, nil, measure); len(got) != 2 || used() != 7 {
		t.Errorf("%d devices after its end, %v changed", used(), got)
	}
	if grown := a.growth[quota.DeviceClaims].Within(quota.Scope{}); len(grown) > 0 {
		t.Errorf("nobody was charged for %v", grown)
	}
	alive = true
	if got := a.changed(quota.Pods, nil, pod, measure); len(got) != 2 || used() != 7 {
		t.Errorf("%d devices with a pod again, %v changed", used(), got)
	}
	if a.changed(quota.DeviceClaims, claim, nil, measure); len(a.claims) != 0 {
		t.Errorf("claims that are remembered: %v", a.claims)
	}
}

func TestNotes(t *testing.T) {
	n := newNotes(patienceOf(0))
	if k := n.known(key("q"), nil, nil, noon); k.quota != nil || n.followed(key("q")) != nil {
		t.Errorf("%v is followed", k.quota)
	}
	first := limits("pods=9", "pods=9", "pods=2")
	n.follow(key("q"), first, ago(time.Minute))
	n.known(key("q"), list("pods=2"), nil, ago(time.Minute))
	n.follow(key("q"), limits("pods=9", "pods=9", "pods=5"), ago(time.Second))
	k := n.known(key("q"), list("pods=3"), list("pods=1"), noon)
	if k.quota != n.followed(key("q")) || k.quota == first || !quota.Same(k.ahead, list("pods=2")) || !k.until.Equal(noon.Add(underWay-time.Second)) {
		t.Errorf("ahead by %v until %v of %v", k.ahead, k.until, k.quota)
	}
	broken := []frozen{{of: secrets, broken: true, since: ago(time.Hour)}}
	for step, want := range []struct {
		frozen       []frozen
		began, ended string
	}{{nil, "", ""}, {broken, "UsageFrozen", ""}, {broken, "", ""}, {nil, "", "UsageCounted"}, {nil, "", ""}} {
		p := plan(observed{known: n.known(key("q"), nil, nil, noon), usage: usage{frozen: want.frozen}}, noon)
		var told string
		for _, stage := range p.Stages {
			told += stage.Steps[0].(act.Event).Reason
		}
		if told != want.began+want.ended {
			t.Errorf("step %d: told %q", step, told)
		}
		n.take(key("q"), p.Note(nil).(outcome), noon)
	}
	n.take(key("q"), outcome{wrote: limits("pods=9", "pods=9", "pods=4")}, noon)
	if got := n.followed(key("q")).Status.Used; !quota.Same(got, list("pods=4")) {
		t.Errorf("what was written is not followed, but %v", got)
	}
	n.forget(key("q"), n.followed(key("q")))
	if len(n.all) != 0 {
		t.Error("something is left")
	}
}

func TestStatesTellWhatChanged(t *testing.T) {
	var s states
	is := served
	look := func() int {
		return len(s.changed(map[schema.GroupResource]bool{secrets: true}, func(schema.GroupResource) health { return is }))
	}
	for step, tc := range []struct {
		health health
		want   int
	}{{served, 1}, {served, 0}, {broken, 1}, {broken, 0}, {served, 1}} {
		if is = tc.health; look() != tc.want {
			t.Errorf("step %d", step)
		}
	}
	if got := s.since(secrets, ago(time.Minute)); got != ago(time.Minute) {
		t.Errorf("since %v", got)
	}
	if got := s.since(secrets, noon); got != ago(time.Minute) {
		t.Errorf("it was found at %v", got)
	}
	look()
	if got := s.since(secrets, noon); got != noon {
		t.Errorf("it was well meanwhile, but broken since %v", got)
	}
}
