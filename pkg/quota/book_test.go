package quota

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// recount is what a book is held against: it adds up every object each time.
func recount(objects map[string]Usage, scope Scope, now time.Time) corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, u := range objects {
		used := u.Used
		if !u.Until.IsZero() && now.After(u.Until) {
			used = u.Then
		}
		if scope.Matches(Pods, u.Traits) {
			for name, quantity := range used {
				sum := total[name]
				sum.Add(quantity)
				total[name] = sum
			}
		}
	}
	return total
}

// randomUsage draws from few forms of pods, or makes one of its own.
func randomUsage(r *rand.Rand, now time.Time) Usage {
	amounts := []string{"100m", "0.1", "1", "1500m", "3", "1Gi", "512Mi", "1e3", "9223372036854775807", "123456789012345678901", "1n"}
	u := Usage{Used: corev1.ResourceList{"pods": one()}, Traits: Traits{Terminating: r.IntN(4) == 0, BestEffort: r.IntN(3) == 0}}
	if r.IntN(3) == 0 {
		u.Traits.PriorityClass = []string{"high", "low"}[r.IntN(2)]
	}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "requests.example.com/gpu"} {
		if r.IntN(2) == 0 {
			u.Used[name] = resource.MustParse(amounts[r.IntN(len(amounts))])
		}
	}
	if r.IntN(5) == 0 {
		u.Until, u.Then = now.Add(time.Duration(r.IntN(20))*time.Second), corev1.ResourceList{"count/pods": one()}
	}
	return u
}

func TestABookHoldsWhatARecountFinds(t *testing.T) {
	specs := []corev1.ResourceQuotaSpec{
		{}, scopes("Terminating"), scopes("NotTerminating", "BestEffort"),
		selecting("PriorityClass", "In", "high"), selecting("PriorityClass", "NotIn", "high"),
	}
	for seed := range testworld.Seeds(t, 2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		book, objects, now := NewBook(Pods, Growth{}), map[string]Usage{}, noon
		for step := range 60 {
			name := fmt.Sprint(r.IntN(12))
			switch action := r.IntN(10); {
			case action < 6:
				u := randomUsage(r, now)
				objects[name] = u
				book.Put(name, u)
			case action < 8:
				_, known := objects[name]
				if book.Remove(name) != known {
					t.Fatalf("seed %d, step %d: removing %s, known: %v", seed, step, name, known)
				}
				delete(objects, name)
			case action < 9:
				now = now.Add(time.Duration(r.IntN(8)) * time.Second)
			default:
				book.Keep([]Scope{ScopeOf(&specs[r.IntN(len(specs))])})
			}
			book.Expire(now)
			for _, spec := range specs[:1+r.IntN(len(specs))] {
				scope := ScopeOf(&spec)
				if want, got := recount(objects, scope, now), book.Sum(scope); !equal(want, got) {
					t.Fatalf("seed %d, step %d, scope %v: got %v, want %v", seed, step, spec, got, want)
				}
			}
			if len(book.objects) != len(objects) {
				t.Fatalf("seed %d, step %d: %d objects, want %d", seed, step, len(book.objects), len(objects))
			}
		}
	}
}

// equal takes a name that is missing for none: a book remembers names, a recount does not.
func equal(a, b corev1.ResourceList) bool {
	for _, pair := range [][2]corev1.ResourceList{{a, b}, {b, a}} {
		for name, quantity := range pair[0] {
			other := pair[1][name]
			if quantity.Cmp(other) != 0 {
				return false
			}
		}
	}
	return true
}

func TestABookTellsWhetherSomethingChanged(t *testing.T) {
	book := NewBook(Pods, Growth{})
	u := Usage{Used: list("pods=1 cpu=1")}
	if !book.Put("a", u) || book.Put("a", Usage{Used: list("pods=1 cpu=1000m")}) {
		t.Error("new is a change, the same is none")
	}
	if !book.Put("a", Usage{Used: list("pods=1 cpu=2")}) || !book.Put("a", Usage{Used: list("pods=1 cpu=2"), Traits: Traits{BestEffort: true}}) {
		t.Error("another usage and other traits are changes")
	}
	leaving := Usage{Used: list("pods=1 cpu=2"), Traits: Traits{BestEffort: true}, Until: noon, Then: list("count/pods=1")}
	if !book.Put("a", leaving) || book.Put("a", leaving) {
		t.Error("a change to come is a change, once")
	}
	if next := book.Expire(noon); !next.Equal(noon) {
		t.Errorf("the next change is at %v", next)
	}
	if next := book.Expire(noon.Add(time.Second)); !next.IsZero() || !Same(book.Sum(Scope{}), list("count/pods=1")) {
		t.Errorf("next %v, sum %v", next, book.Sum(Scope{}))
	}
	if book.Remove("b") || !book.Remove("a") || len(book.objects) != 0 || len(book.entries) != 0 || len(book.expiring) != 0 {
		t.Error("something is left")
	}
}

func TestGrowthIsWhatSingleObjectsAdded(t *testing.T) {
	long := scopes("Terminating")
	all, terminating := Scope{}, ScopeOf(&long)
	growth := Growth{}
	book := NewBook(Pods, growth)
	book.Put("listed", Usage{Used: list("pods=1 cpu=5")})
	book.Sum(all)
	book.Sum(terminating)
	for step, tc := range []struct {
		do                func()
		grown, grownScope string
	}{
		{func() {}, "", ""},
		{func() { book.Put("a", Usage{Used: list("pods=1 cpu=2")}) }, "pods=1 cpu=2", ""},
		{func() { book.Put("a", Usage{Used: list("pods=1 cpu=3")}) }, "pods=1 cpu=3", ""},
		{func() { book.Put("a", Usage{Used: list("pods=1 cpu=1")}) }, "pods=1 cpu=3", ""},
		{func() { book.Put("a", Usage{Used: list("pods=1 cpu=1"), Traits: Traits{Terminating: true}}) }, "pods=1 cpu=3", "pods=1 cpu=1"},
		{func() { book.Remove("a"); book.Remove("listed") }, "pods=1 cpu=3", "pods=1 cpu=1"},
		{func() { book.Put("a", Usage{Used: list("pods=1")}) }, "pods=2 cpu=3", "pods=1 cpu=1"},
		{func() { book.Keep([]Scope{all}) }, "pods=2 cpu=3", ""},
		{func() { book = NewBook(Pods, growth); book.Sum(all); book.Put("b", Usage{Used: list("pods=1")}) }, "pods=3 cpu=3", ""},
	} {
		tc.do()
		if got := growth.Within(all); !Same(got, list(tc.grown)) {
			t.Errorf("step %d: grown by %v", step, got)
		}
		if got := growth.Within(terminating); !Same(got, list(tc.grownScope)) {
			t.Errorf("step %d: grown within the scope by %v", step, got)
		}
	}
}

func TestObjectsThatUseTheSameShareAnEntry(t *testing.T) {
	book := NewBook(Pods, Growth{})
	for i := range 1000 {
		book.Put(fmt.Sprint(i), Rules{}.Measure(Pods, pod(func(*corev1.Pod) {}), noon))
	}
	if len(book.entries) != 1 {
		t.Errorf("%d entries", len(book.entries))
	}
}

// BenchmarkOneChange is the cost of one pod's change in a large namespace, and what counting all would cost.
func BenchmarkOneChange(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		book, objects := NewBook(Pods, Growth{}), map[string]Usage{}
		for i := range size {
			u := Rules{}.Measure(Pods, pod(func(*corev1.Pod) {}), noon)
			objects[fmt.Sprint(i)] = u
			book.Put(fmt.Sprint(i), u)
		}
		book.Sum(Scope{})
		grown := pod(func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requirements("cpu=3", "") })
		b.Run(fmt.Sprintf("book of %d", size), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				p := grown
				if i%2 == 0 {
					p = pod(func(*corev1.Pod) {})
				}
				book.Put("0", Rules{}.Measure(Pods, p, noon))
				book.Sum(Scope{}).DeepCopy()
			}
		})
		b.Run(fmt.Sprintf("recount of %d", size), func(b *testing.B) {
			for b.Loop() {
				recount(objects, Scope{}, noon)
			}
		})
	}
}

// A sum is written as the objects write it that are there: those that have gone leave
// nothing behind.
func TestASumIsWrittenAsItsObjectsWriteIt(t *testing.T) {
	usage := func(memory string) Usage {
		return Usage{Used: corev1.ResourceList{"memory": resource.MustParse(memory)}}
	}
	for name, tc := range map[string]struct {
		// objects come in this order; all but the last go again.
		objects []string
		want    string
	}{
		"one alone":                    {[]string{"1Gi"}, "1Gi"},
		"binary after decimal":         {[]string{"1G", "1Gi"}, "1Gi"},
		"decimal after binary":         {[]string{"1Gi", "1G"}, "1G"},
		"an exponent after both":       {[]string{"1Gi", "1G", "1e9"}, "1e9"},
		"several of a kind":            {[]string{"1Gi", "2Gi", "1500m", "3Gi"}, "3Gi"},
		"the same, written otherwise":  {[]string{"1Gi", "1073741824"}, "1073741824"},
		"nothing does not say how":     {[]string{"0", "1Gi"}, "1Gi"},
		"and does not after something": {[]string{"1500m", "0", "1Gi"}, "1Gi"},
	} {
		for _, early := range []bool{true, false} {
			book := NewBook(Pods, Growth{})
			if early {
				book.Sum(Scope{}) // is kept from now on
			}
			for i, memory := range tc.objects {
				book.Put(fmt.Sprint(i), usage(memory))
			}
			book.Sum(Scope{})
			for i := range len(tc.objects) - 1 {
				book.Remove(fmt.Sprint(i))
			}
			total := book.Sum(Scope{})["memory"]
			if got := total.String(); got != tc.want {
				t.Errorf("%s (early: %v): got %s, want %s", name, early, got, tc.want)
			}
		}
	}
}
