package daemonset

import (
	"fmt"
	"testing"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

func TestANodeNeverHasTwoPods(t *testing.T) {
	for seed := range testworld.Seeds(t, 150) {
		w := newWorld(t, seed, daemon(posts("0", fmt.Sprint(1+seed%3))), 4)
		w.Add(w.times("crash", 3, w.crash), w.times("loss", 5, w.loss), w.times("nodes", 8, w.churn),
			w.times("user", 3, func() string { return w.change(image(fmt.Sprint("v", w.Rand.IntN(3)))) }))
		w.Always(w.crowded(1))
		w.end(seed)
	}
}

func TestASurgeNeverHasThreePodsOnANode(t *testing.T) {
	for seed := range testworld.Seeds(t, 150) {
		w := newWorld(t, seed, daemon(posts(fmt.Sprint(1+seed%3), "0")), 4)
		w.Add(w.times("crash", 3, w.crash), w.times("loss", 5, w.loss), w.times("nodes", 8, w.churn),
			w.times("user", 3, func() string { return w.change(image(fmt.Sprint("v", w.Rand.IntN(3)))) }))
		w.Always(w.crowded(2))
		w.end(seed)
	}
}

// available counts the pods that work.
func (w *world) available() (n int) {
	for _, p := range w.server.pods {
		if p.DeletionTimestamp == nil && podrules.Ready(p) {
			n++
		}
	}
	return n
}

func TestARolloutNeverGoesBelowItsBounds(t *testing.T) {
	const nodes = 6
	for _, surge := range []bool{false, true} {
		for seed := range testworld.Seeds(t, 100) {
			least, most := nodes-2, nodes
			ds := daemon(posts("0", "2"))
			if surge {
				least, most = nodes, nodes+2
				ds = daemon(posts("2", "0"))
			}
			w := newWorld(t, seed, ds, nodes)
			w.Faults = 0
			reached := false
			w.Add(w.times("crash", 2, w.crash), w.times("user", 3, func() string {
				if !reached {
					return "waits"
				}
				return w.change(image(fmt.Sprint("v", 2+w.Rand.IntN(3))))
			}))
			w.Always(func() string {
				n, active := w.available(), 0
				for _, p := range w.server.pods {
					if podrules.Active(p) {
						active++
					}
				}
				reached = reached || n == nodes
				switch {
				case reached && n < least:
					return fmt.Sprintf("only %d pods work", n)
				case active > most:
					return fmt.Sprintf("%d pods at once", active)
				}
				return ""
			})
			w.end(seed)
		}
	}
}

func TestASetLeftToUsersSettlesWithOldPods(t *testing.T) {
	for seed := range testworld.Seeds(t, 60) {
		w := newWorld(t, seed, daemon(onDelete), 4)
		w.Add(w.times("crash", 2, w.crash), w.times("nodes", 5, w.churn), w.times("user", 2, func() string { return w.change(image(fmt.Sprint("v", w.Rand.IntN(3)))) }))
		w.Always(w.crowded(1))
		w.end(seed)
	}
}
