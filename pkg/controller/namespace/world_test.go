package namespace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// crowd are some namespaces that end, in a cluster that answers oddly.
type crowd struct {
	*place
	rand  *rand.Rand
	names []string
	// odds is how many odd answers there are still to come.
	odds int
	// lacking: discovery lacked widgets last: their list does not lie at
	// the same time.
	lacking bool
	broke   string
	log     []string
}

var oddAnswers = []error{
	notServed, notAllowed, apierrors.NewInternalError(errors.New("conversion failed")), apierrors.NewServiceUnavailable("down"),
	apierrors.NewResourceExpired("too old"), errors.New("connection refused"),
	apierrors.NewConflict(schema.GroupResource{Resource: "widgets"}, "w", errors.New("a webhook says no")),
}

func newOddCrowd(t *testing.T, seed uint64) *crowd {
	c := &crowd{rand: rand.New(rand.NewPCG(seed, 0)), odds: 25}
	var content []runtime.Object
	for i := range 3 {
		for _, kind := range []string{"configmaps", "widgets"} {
			if c.rand.IntN(2) == 0 {
				content = append(content, in(fmt.Sprintf("n-%02d", i), object(kind, "o")))
			}
		}
	}
	c.place, c.names = newCrowd(t, 3, content...)
	c.meta.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if c.lacking && action.GetResource() == widgets.gvr || !c.isOdd(4) {
			return false, nil, nil
		}
		err := oddAnswers[c.rand.IntN(len(oddAnswers))]
		c.note("     %s %s in %q: %v", action.GetVerb(), action.GetResource().Resource, action.GetNamespace(), err)
		return true, nil, err
	})
	c.client.PrependReactor("update", "namespaces", c.finalize)
	c.library.since(noon) // what was never discovered cannot be missed
	c.library.discover = c.discover
	return c
}

func (c *crowd) note(format string, args ...any) { c.log = append(c.log, fmt.Sprintf(format, args...)) }

func (c *crowd) isOdd(in int) bool {
	if c.odds == 0 || c.rand.IntN(in) > 0 {
		return false
	}
	c.odds--
	return true
}

// discover finds all kinds, or lacks one, or says that it could not ask for one.
func (c *crowd) discover() ([]*metav1.APIResourceList, error) {
	c.lacking = false
	if !c.isOdd(3) {
		return c.lists, nil
	}
	switch c.rand.IntN(3) {
	case 0:
		c.note("     discovery lacks widgets")
		c.lacking = true
		return c.lists[:1], nil
	case 1:
		c.note("     discovery fails for widgets")
		return c.lists[:1], &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{widgets.gvr.GroupVersion(): errDown}}
	}
	c.note("     discovery fails")
	return nil, errDown
}

// finalize removes a namespace, which must be empty.
func (c *crowd) finalize(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "finalize" {
		return false, nil, nil
	}
	ns := action.(clienttesting.UpdateAction).GetObject().(*corev1.Namespace)
	for _, r := range []resource{configMaps, widgets} {
		if _, err := c.meta.Tracker().Get(r.gvr, ns.Name, "o"); err == nil {
			c.broke = fmt.Sprintf("%s is finalized with %s in it", ns.Name, r.gvr.Resource)
		}
	}
	c.note("     %s is finalized", ns.Name)
	_ = c.cached.Delete(ns)
	_ = c.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("namespaces"), "", ns.Name)
	return true, ns, nil
}

// step does one thing that may happen next.
func (c *crowd) step(t *testing.T) {
	keys := append([]string{surveyKey, probeKey, probeKey}, c.names...)
	if c.rand.IntN(4) == 0 {
		c.clock.Step(time.Duration(c.rand.IntN(8)) * time.Second)
	}
	key := keys[c.rand.IntN(len(keys))]
	result := c.sync(t.Context(), key)
	c.note("%s: again after %v, %v", key, result.After(), result.Err())
}

func TestNothingIsFinalizedWithObjectsInIt(t *testing.T) {
	for seed := range testworld.Seeds(t, 150) {
		c := newOddCrowd(t, seed)
		for n := 0; n < 600 && c.broke == "" && len(c.cached.List()) > 0; n++ {
			if n == 200 {
				c.odds = 0 // from here on all is well
			}
			c.step(t)
		}
		if c.broke == "" && len(c.cached.List()) > 0 {
			c.broke = fmt.Sprintf("%d namespaces are stuck", len(c.cached.List()))
		}
		if c.broke != "" {
			for _, line := range c.log {
				t.Log(line)
			}
			t.Fatalf("seed %d: %s", seed, c.broke)
		}
	}
}
