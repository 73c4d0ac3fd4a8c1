package quota

import (
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
}

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
}

// NewBook returns an empty book for the objects of a resource.
func NewBook(of schema.GroupResource) *Book {
	return &Book{
		resource: of, objects: map[string]*entry{}, entries: map[entryKey]*entry{},
		expiring: map[string]expiry{}, sums: map[string]*sum{},
	}
}

// Len is how many objects are in the book.
func (b *Book) Len() int { return len(b.objects) }

// Put notes what the object of that name uses now, and tells whether that
// changed. Until tells of a change to come, so it is a change as well.
func (b *Book) Put(name string, u Usage) bool {
	was, known := b.expiring[name]
	expires := !u.Until.IsZero()
	if expires {
		b.expiring[name] = expiry{u.Until, u.Then}
	} else if known {
		delete(b.expiring, name)
	}
	changed := b.put(name, u.Used, u.Traits)
	return changed || expires != known || expires && !was.at.Equal(u.Until)
}

func (b *Book) put(name string, used corev1.ResourceList, traits Traits) bool {
	old := b.objects[name]
	if old != nil && old.key.traits == traits && Same(old.used, used) {
		return false
	}
	if old != nil {
		b.leave(old)
	}
	key := entryKey{printed(used), traits}
	now := b.entries[key]
	if now == nil {
		now = &entry{key: key, used: used}
		b.entries[key] = now
	}
	b.objects[name] = now
	b.enter(now)
	return true
}

// Remove takes the object of that name out, and tells whether it was there.
func (b *Book) Remove(name string) bool {
	old := b.objects[name]
	if old == nil {
		return false
	}
	b.leave(old)
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
			b.put(name, e.then, b.objects[name].key.traits)
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
	s := &sum{scope: scope, total: corev1.ResourceList{}}
	for _, e := range b.entries {
		if scope.Matches(b.resource, e.key.traits) {
			for name, quantity := range e.used {
				times := quantity.DeepCopy()
				times.Mul(int64(e.objects))
				add(s.total, name, times)
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
		}
	}
}

func (b *Book) enter(e *entry) {
	e.objects++
	for _, s := range b.sums {
		if s.scope.Matches(b.resource, e.key.traits) {
			for name, quantity := range e.used {
				add(s.total, name, quantity)
			}
		}
	}
}

func (b *Book) leave(e *entry) {
	e.objects--
	if e.objects == 0 {
		delete(b.entries, e.key)
	}
	for _, s := range b.sums {
		if s.scope.Matches(b.resource, e.key.traits) {
			for name, quantity := range e.used {
				left := s.total[name]
				left.Sub(quantity)
				s.total[name] = left
			}
		}
	}
}

func add(to corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	if sum, ok := to[name]; ok {
		sum.Add(quantity)
		to[name] = sum
		return
	}
	to[name] = quantity.DeepCopy()
}

// Same tells whether two lists have the same names and quantities.
func Same(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		if other, ok := b[name]; !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// printed is the same for lists that are the same.
func printed(list corev1.ResourceList) string {
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		quantity := list[corev1.ResourceName(name)]
		b.WriteString(name)
		b.WriteByte('=')
		b.WriteString(quantity.AsDec().String())
		b.WriteByte(';')
	}
	return b.String()
}
