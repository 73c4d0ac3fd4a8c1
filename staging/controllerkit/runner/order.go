package runner

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// Fair returns the storage of a queue in which groups of keys take turns, so that
// a flood in one group does not hold up the others. Within a group it is first in,
// first out. A push and a pop cost the same however many keys wait.
func Fair[K comparable](group func(K) string) workqueue.Queue[K] {
	return &fair[K]{group: group, waiting: map[string]workqueue.Queue[K]{}, turns: workqueue.DefaultQueue[string]()}
}

// byNamespace groups keys by their namespace; keys of another kind are one group.
func byNamespace[K comparable](key K) string {
	if name, ok := any(key).(types.NamespacedName); ok {
		return name.Namespace
	}
	return ""
}

// fair is called under the lock of the work queue.
type fair[K comparable] struct {
	group func(K) string
	// waiting are the keys of the groups that have any, turns the order of these groups.
	waiting map[string]workqueue.Queue[K]
	turns   workqueue.Queue[string]
	keys    int
}

func (f *fair[K]) Touch(K) {}

func (f *fair[K]) Len() int { return f.keys }

func (f *fair[K]) Push(key K) {
	name := f.group(key)
	queue, ok := f.waiting[name]
	if !ok {
		queue = workqueue.DefaultQueue[K]()
		f.waiting[name] = queue
		f.turns.Push(name)
	}
	queue.Push(key)
	f.keys++
}

func (f *fair[K]) Pop() K {
	name := f.turns.Pop()
	queue := f.waiting[name]
	key := queue.Pop()
	f.keys--
	if queue.Len() > 0 {
		f.turns.Push(name)
	} else {
		delete(f.waiting, name)
	}
	return key
}
