package daemonset

import (
	"container/heap"
	"slices"
	"time"
)

// names are sorted.
type names []string

func (n *names) put(name string, is bool) {
	switch at, there := slices.BinarySearch(*n, name); {
	case is && !there:
		*n = slices.Insert(*n, at, name)
	case there && !is:
		*n = slices.Delete(*n, at, at+1)
	}
}

// look is when a node has to be looked at again.
type look struct {
	at   time.Time
	node string
}

// looks is a heap of them, the next one first.
type looks []look

// first returns the next one that holds still and is not of a node among others, nil
// if there is none. Those that do not hold any more are dropped.
func (l *looks) first(among func(string) bool, holds func(look) bool) *look {
	var aside []look
	defer func() {
		for _, one := range aside {
			heap.Push(l, one)
		}
	}()
	for len(*l) > 0 {
		switch next := (*l)[0]; {
		case !holds(next):
			heap.Pop(l)
		case among(next.node):
			aside = append(aside, heap.Pop(l).(look))
		default:
			return &next
		}
	}
	return nil
}

func (l looks) Len() int           { return len(l) }
func (l looks) Less(i, j int) bool { return l[i].at.Before(l[j].at) }
func (l looks) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }

// Push is for the heap.
func (l *looks) Push(x any) { *l = append(*l, x.(look)) }

// Pop is for the heap.
func (l *looks) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
