package selinuxwarning

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
)

type key = types.NamespacedName

// use is how a pod uses a volume: with the label that it asks for, which it gets if the
// volume can be mounted with one.
type use struct {
	source
	label label
}

// noted is what was last judged of a pod.
type noted struct {
	uid  types.UID
	uses []use
}

// rival is another pod on a volume, the label that it asks for, and whether the driver
// could mount with labels when that pod was judged.
type rival struct {
	pod       key
	label     label
	supported bool
}

// book has the pods that use a volume, by their labels. It is safe for concurrent use.
type book struct {
	mu      sync.Mutex
	volumes map[volumes.Name]*volume
	pods    map[key]noted
}

type volume struct {
	driver    string
	supported bool
	// users are, by what they ask for, the pods and whether they were judged as supported.
	users map[label]map[key]bool
}

func newBook() *book { return &book{volumes: map[volumes.Name]*volume{}, pods: map[key]noted{}} }

// set replaces what was noted of a pod; nothing is used by one that is gone.
func (b *book) set(pod key, now noted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.pods[pod].uses {
		b.remove(pod, u)
	}
	delete(b.pods, pod)
	for _, u := range now.uses {
		v := b.volumes[u.id]
		if v == nil {
			v = &volume{users: map[label]map[key]bool{}}
			b.volumes[u.id] = v
		}
		v.driver, v.supported = u.driver, u.supported
		if v.users[u.label] == nil {
			v.users[u.label] = map[key]bool{}
		}
		v.users[u.label][pod] = u.supported
	}
	if len(now.uses) > 0 {
		b.pods[pod] = now
	}
}

func (b *book) remove(pod key, u use) {
	v := b.volumes[u.id]
	if v == nil {
		return
	}
	delete(v.users[u.label], pod)
	if len(v.users[u.label]) == 0 {
		delete(v.users, u.label)
	}
	if len(v.users) == 0 {
		delete(b.volumes, u.id)
	}
}

// of returns what was last noted of a pod.
func (b *book) of(pod key) noted {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pods[pod]
}

// rivals returns the users of a volume that ask for another label, in order.
func (b *book) rivals(volume volumes.Name, pod key, own label) []rival {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.volumes[volume]
	if v == nil {
		return nil
	}
	var all []rival
	for l, users := range v.users {
		if l == own {
			continue
		}
		for other, supported := range users {
			if other != pod {
				all = append(all, rival{other, l, supported})
			}
		}
	}
	slices.SortFunc(all, func(a, b rival) int { return compare(a.pod, b.pod) })
	return all
}

// with returns the pods on volumes of a driver.
func (b *book) with(driver string) []key {
	b.mu.Lock()
	defer b.mu.Unlock()
	users := map[key]bool{}
	for _, v := range b.volumes {
		if v.driver != driver {
			continue
		}
		for _, of := range v.users {
			maps.Copy(users, of)
		}
	}
	return slices.SortedFunc(maps.Keys(users), compare)
}

func compare(a, b key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// pair is a conflict of two pods, as the first of them has it.
type pair struct {
	pod, other key
	conflict
}

// conflicts returns all pairs of pods that conflict, each in both directions. Two that
// conflict on several volumes in the same way are there once.
func (b *book) conflicts() map[pair]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[pair]bool{}
	for _, v := range b.volumes {
		if !v.supported {
			continue
		}
		for own, users := range v.users {
			for others, rivals := range v.users {
				for _, c := range conflicts(own, others) {
					add(all, c, users, rivals)
				}
			}
		}
	}
	return all
}

// add adds a conflict of each of the users with each of their rivals.
func add(all map[pair]bool, c conflict, users, rivals map[key]bool) {
	for pod := range users {
		for other := range rivals {
			all[pair{pod, other, c}] = true
		}
	}
}
