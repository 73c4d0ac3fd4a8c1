package quota

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Book holds what the objects of one resource in one namespace use. Objects that
// use the same, as the pods of a Deployment do, share one entry; sums are kept
// for each scope that was asked for. It is not safe for concurrent use.
type Book struct {
	resource schema.GroupResource
	// objects are the entries by the names of their objects.
	objects  map[string]*entry
	entries  map[entryKey]*entry
	expiring map[string]expiry
	sums     map[string]*sum
	growth   Growth
}

// Growth is how much the sums of a resource have ever grown by changes of single
// objects, by scope. What they shrank by is not taken off, so the difference of
// two looks is what was added meanwhile, whatever went.
type Growth map[string]corev1.ResourceList

// Within is the growth within a scope.
func (g Growth) Within(scope Scope) corev1.ResourceList { return g[scope.key] }

// entry is what some objects use each.
type entry struct {
	key     entryKey
	used    corev1.ResourceList
	objects int
}

type entryKey struct {
	used   string
	traits Traits
}

// expiry is what an object uses after a while.
type expiry struct {
	at   time.Time
	then corev1.ResourceList
}

// sum is over the objects within a scope.
type sum struct {
	scope Scope
	total corev1.ResourceList
	// formats is how many objects write a quantity so, none left out but those of nothing.
	formats map[written]int
}

// written is a way to write the quantity of a name, such as in powers of two.
type written struct {
	name   corev1.ResourceName
	format resource.Format
}

// NewBook returns an empty book for the objects of a resource, which adds to growth.
func NewBook(of schema.GroupResource, growth Growth) *Book {
	return &Book{
		resource: of, objects: map[string]*entry{}, entries: map[entryKey]*entry{},
		expiring: map[string]expiry{}, sums: map[string]*sum{}, growth: growth,
	}
}

// Put notes what the object of that name uses now, and reports whether that
// changed. A usage that will expire (Until) counts as changed.
func (b *Book) Put(name string, u Usage) bool { return b.note(name, u, true) }

// Again is Put for an object that has not changed itself: what it uses more now, nobody was
// charged for, so it is no growth.
func (b *Book) Again(name string, u Usage) bool { return b.note(name, u, false) }

func (b *Book) note(name string, u Usage, grows bool) bool {
	was, known := b.expiring[name]
	expires := !u.Until.IsZero()
	if expires {
		b.expiring[name] = expiry{u.Until, u.Then}
	} else if known {
		delete(b.expiring, name)
	}
	changed := b.put(name, u.Used, u.Traits, grows)
	return changed || expires != known || expires && !was.at.Equal(u.Until)
}

func (b *Book) put(name string, used corev1.ResourceList, traits Traits, grows bool) bool {
	old := b.objects[name]
	if old != nil && old.key.traits == traits && Same(old.used, used) {
		return false
	}
	b.release(old)
	key := entryKey{printed(used), traits}
	now := b.entries[key]
	if now == nil {
		now = &entry{key: key, used: used}
		b.entries[key] = now
	}
	now.objects++
	b.objects[name] = now
	b.move(old, now, grows)
	return true
}

// Remove takes the object of that name out, and reports whether it was there.
func (b *Book) Remove(name string) bool {
	old := b.objects[name]
	if old == nil {
		return false
	}
	b.release(old)
	b.move(old, nil, false)
	delete(b.objects, name)
	delete(b.expiring, name)
	return true
}

// Expire applies what was to change by now, and returns when the next such
// change is due, zero if none is.
func (b *Book) Expire(now time.Time) (next time.Time) {
	for name, e := range b.expiring {
		switch {
		case now.After(e.at):
			delete(b.expiring, name)
			b.put(name, e.then, b.objects[name].key.traits, false)
		case next.IsZero() || e.at.Before(next):
			next = e.at
		}
	}
	return next
}

// Sum returns what the objects within a scope use together. The list is the
// book's own and is good until the next change.
func (b *Book) Sum(scope Scope) corev1.ResourceList {
	if s, ok := b.sums[scope.key]; ok {
		return s.total
	}
	s := &sum{scope: scope, total: corev1.ResourceList{}, formats: map[written]int{}}
	for _, e := range b.entries {
		if scope.Matches(b.resource, e.key.traits) {
			for name, quantity := range e.used {
				times := quantity.DeepCopy()
				times.Mul(int64(e.objects))
				add(s.total, name, times)
				s.writes(name, quantity, e.objects)
			}
		}
	}
	b.sums[scope.key] = s
	return s.total
}

// Keep drops the sums of all scopes but these.
func (b *Book) Keep(scopes []Scope) {
	for key := range b.sums {
		if !slices.ContainsFunc(scopes, func(s Scope) bool { return s.key == key }) {
			delete(b.sums, key)
			delete(b.growth, key)
		}
	}
}

// release takes an object off its entry, nil if it had none.
func (b *Book) release(e *entry) {
	if e == nil {
		return
	}
	e.objects--
	if e.objects == 0 {
		delete(b.entries, e.key)
	}
}

// move changes the sums by an object that was in one entry and is in another
// now; nil is none.
func (b *Book) move(old, now *entry, grows bool) {
	for key, s := range b.sums {
		was, is := s.part(b.resource, old), s.part(b.resource, now)
		for name, quantity := range is {
			add(s.total, name, quantity)
			s.writes(name, quantity, 1)
			more := quantity.DeepCopy()
			more.Sub(was[name])
			if grows && more.Sign() > 0 {
				if b.growth[key] == nil {
					b.growth[key] = corev1.ResourceList{}
				}
				add(b.growth[key], name, more)
			}
		}
		for name, quantity := range was {
			s.writes(name, quantity, -1)
			left := s.total[name]
			left.Sub(quantity)
			left.Format = s.format(name, left.Format)
			s.total[name] = left
		}
	}
}

// writes counts objects by how they write their quantity.
func (s *sum) writes(name corev1.ResourceName, quantity resource.Quantity, objects int) {
	if !quantity.IsZero() {
		s.formats[written{name, quantity.Format}] += objects
	}
}

// format is how a sum is written: as it was, if one of its objects does so, else as
// they do. It says nothing of objects that are gone.
func (s *sum) format(name corev1.ResourceName, was resource.Format) resource.Format {
	for _, format := range []resource.Format{was, resource.BinarySI, resource.DecimalSI, resource.DecimalExponent} {
		if s.formats[written{name, format}] > 0 {
			return format
		}
	}
	return was
}

// part is what an object of the entry uses within the scope of the sum.
func (s *sum) part(of schema.GroupResource, e *entry) corev1.ResourceList {
	if e == nil || !s.scope.Matches(of, e.key.traits) {
		return nil
	}
	return e.used
}

func add(to corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	if sum, ok := to[name]; ok {
		sum.Add(quantity)
		to[name] = sum
		return
	}
	to[name] = quantity.DeepCopy()
}

// Same reports whether two lists have the same names and quantities.
func Same(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(one, other resource.Quantity) bool { return one.Cmp(other) == 0 })
}

// printed is the same for lists that are the same and are written alike.
func printed(list corev1.ResourceList) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		b.WriteString(string(name))
		b.WriteByte('=')
		b.WriteString(quantity.AsDec().String())
		b.WriteString(string(quantity.Format))
		b.WriteByte(';')
	}
	return b.String()
}
