package garbagecollector

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// user does one random thing.
func (p *play) user() string {
	if p.ops == 0 {
		return ""
	}
	p.ops--
	switch n := p.Rand.IntN(21); {
	case n < 8:
		return p.make()
	case n < 13:
		return p.drop()
	case n < 16:
		return p.reown()
	case n < 17:
		return p.holdOrLet()
	case n < 18:
		p.broken["boxes"] = !p.broken["boxes"]
		return fmt.Sprint("boxes broken: ", p.broken["boxes"])
	case n < 19:
		p.unknown["Globe"] = !p.unknown["Globe"]
		return fmt.Sprint("kind Globe unknown: ", p.unknown["Globe"])
	}
	switch {
	case p.meddling:
		return "nothing"
	case p.Rand.IntN(2) == 0:
		return p.relist()
	}
	p.restart()
	return "the collector is killed and started again"
}

// any is the location of some object, or false if there is none.
func (p *play) any() (location, bool) {
	all := slices.SortedFunc(maps.Keys(p.objects), func(a, b location) int {
		return compare(a.String(), b.String())
	})
	if len(all) == 0 {
		return location{}, false
	}
	return all[p.Rand.IntN(len(all))], true
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// refs are up to two references, right or wrong.
func (p *play) refs() []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	for range p.Rand.IntN(3) {
		at, ok := p.any()
		if !ok {
			break
		}
		r := ref(kindOf(at.resource), p.objects[at])
		switch p.Rand.IntN(24) {
		case 0:
			r.UID += "-never"
		case 1:
			r.Name += "-wrong"
		case 2:
			r.Kind = "Ghost"
		}
		if p.Rand.IntN(2) == 0 {
			r = blocking(r)
		}
		if refTo(refs, r.UID) == nil {
			refs = append(refs, r)
		}
	}
	return refs
}

// make makes an object, often under a name that was used before.
func (p *play) make() string {
	k, namespace := boxes, []string{"a", "b"}[p.Rand.IntN(2)]
	if p.Rand.IntN(6) == 0 {
		k, namespace = globes, ""
	}
	name := fmt.Sprint("o", p.Rand.IntN(8))
	if p.objects[location{k.resource, namespace, name}] != nil {
		return "nothing"
	}
	o := p.create(k, namespace, name, p.refs()...)
	return fmt.Sprintf("made %s in %q, owned by %s", o.UID, namespace, uids(o.OwnerReferences))
}

func uids(refs []metav1.OwnerReference) (text string) {
	for _, r := range refs {
		text += fmt.Sprintf("%s(%s %s blocks %v) ", r.UID, r.Kind, r.Name, blocks(&r))
	}
	return text
}

func (p *play) drop() string {
	at, ok := p.any()
	if !ok {
		return "nothing"
	}
	policies := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}
	policy := policies[p.Rand.IntN(3)]
	uid := p.objects[at].UID
	if p.objects[at].DeletionTimestamp != nil {
		return "nothing"
	}
	broken := p.broken[kindOf(at.resource).resource.Resource]
	p.broken[kindOf(at.resource).resource.Resource] = false
	err := p.server.delete(context.Background(), at, metav1.DeleteOptions{PropagationPolicy: &policy})
	p.broken[kindOf(at.resource).resource.Resource] = broken
	return fmt.Sprintf("deletes %s, %s (%v)", uid, policy, err)
}

// reown gives an object other owners.
func (p *play) reown() string {
	at, ok := p.any()
	if !ok {
		return "nothing"
	}
	refs := p.refs()
	p.change(at, func(o *metav1.PartialObjectMetadata) { o.OwnerReferences = refs })
	return fmt.Sprintf("%s is now owned by %s", at, uids(refs))
}

func (p *play) holdOrLet() string {
	at, ok := p.any()
	if !ok || p.objects[at].DeletionTimestamp != nil {
		return "nothing"
	}
	p.change(at, func(o *metav1.PartialObjectMetadata) { o.Finalizers = []string{hold} })
	return "holds " + at.String()
}
