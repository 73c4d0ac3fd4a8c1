package cloud

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// pause is what a loop heeds.
type pause struct {
	runner.Pause
	controller string
}

// Heed has the loop obey a pause, under the name of its controller; call it before Run.
// While the controller is paused no work begins, and what is under way changes nothing any
// more in the cloud. On resume what waited begins with what there is then.
func (l *Loop) Heed(controller string, p runner.Pause) { l.gate.pause = &pause{p, controller} }

// held returns why nothing may be changed for objects of a namespace; nil if it may.
func (g *gate) held(namespace string) error {
	if g.pause == nil {
		return nil
	}
	if why := g.pause.Paused(g.pause.controller, namespace); why != "" {
		return &consistency.Withheld{Why: why}
	}
	return nil
}

// turn returns when work may begin: it waits while the controller is paused, or until the
// stop. It does not wait for a namespace, which would hold up all others: then it returns
// why, and the library tries again.
func (g *gate) turn(namespace string) error {
	held := consistency.WasWithheld(g.held(metav1.NamespaceNone))
	if held != nil && !act.Await(g.stopped(), clock.RealClock{}, g.pause, held, g.pause.controller, metav1.NamespaceNone) {
		return errStopped
	}
	return g.held(namespace)
}

// stopped is closed with the stop.
func (g *gate) stopped() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running.Done()
}
