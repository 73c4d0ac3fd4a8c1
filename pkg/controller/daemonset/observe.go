package daemonset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// byNode finds the pods that a set controls on one node, or made for it.
var byNode = cache.NewIndex("daemonSetNode", func(object any) ([]string, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, nil
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && ref.Kind == kind.Kind {
		return []string{onNode(pod.Namespace, ref.UID, nodeOf(pod))}, nil
	}
	return nil, nil
})

func onNode(namespace string, set types.UID, node string) string {
	return namespace + "/" + string(set) + "/" + node
}

// observed is what the plan is made of.
type observed struct {
	set      *appsv1.DaemonSet
	selector labels.Selector
	// malformed is why pods cannot be made for the set.
	malformed error
	// orphans are the pods to adopt.
	orphans   []*corev1.Pod
	revisions ownership.Claims[*appsv1.ControllerRevision]
	// data is what a revision of the present template holds.
	data []byte
	// members are all pods of the set if several revisions hold its template.
	members []*corev1.Pod

	// asked is what nodes are considered by, but for the time, under these terms.
	asked question
	terms terms
	// views are the nodes to consider, by name: whole if they are all. Others are the sums
	// over those that are not among them. At is the number of the latest mark.
	views  []view
	whole  bool
	others elsewhere
	at     uint64
	// waiting and leaving are nodes among the others for which the bounds of a rollout may
	// leave room.
	waiting, leaving []candidate
	// patient: rejected pods are replaced ever more rarely.
	patient bool
}

// observe reads the set and what belongs to it from the caches.
func (c *Controller) observe(_ context.Context, key Key) (*observed, error) {
	set, err := c.sets.DaemonSets(key.Namespace).Get(key.Name)
	if err != nil {
		c.forget(key)
		return nil, reconcile.ErrAbsent
	}
	o := &observed{set: set, patient: c.patient}
	if selectsAll(set) || set.DeletionTimestamp != nil {
		return o, nil
	}
	if o.selector, o.malformed = c.check(set); o.malformed != nil {
		return o, nil
	}
	orphans, err := cache.Adoptable[corev1.Pod](c.pods, set.Namespace, o.selector)
	if err != nil {
		return o, err
	}
	o.orphans = ownership.Claim(set, o.selector, orphans).Adopt
	b := c.book(key)
	hash, err := c.past(o, b)
	if err != nil {
		return o, err
	}
	o.terms = terms{set.UID, set.Generation, hash}
	o.asked = question{
		selector: o.selector, minReady: set.Spec.MinReadySeconds, hash: hash, generation: templateGeneration(set), rolls: rolls(set), surges: surges(set),
	}
	return o, c.look(o, b, c.daemons.Clock().Now())
}

// check returns the selector of a set that pods can be made for.
func (c *Controller) check(set *appsv1.DaemonSet) (labels.Selector, error) {
	selector, err := c.selectors.Of(set, set.Spec.Selector)
	switch {
	case err != nil:
		return nil, fmt.Errorf("daemon set %s/%s has an invalid label selector: %w", set.Namespace, set.Name, err)
	case !selector.Matches(labels.Set(set.Spec.Template.Labels)):
		return nil, fmt.Errorf("selector of daemon set %s/%s does not match the labels of its template", set.Namespace, set.Name)
	}
	return selector, nil
}

// past reads the revisions, and returns the hash that the present template's is to have.
func (c *Controller) past(o *observed, b *book) (hash string, err error) {
	var known string
	o.data, known, err = b.dataFor(terms{uid: o.set.UID, generation: o.set.Generation}, func() ([]byte, error) { return revisions.DataOf(&o.set.Spec.Template) })
	if err != nil {
		return "", err
	}
	if o.revisions, err = revisions.Claims(c.revisions, o.set, o.selector); err != nil {
		return "", err
	}
	l := lineageOf(o.data, slices.Concat(o.revisions.Owned, o.revisions.Adopt))
	if len(l.duplicates) > 0 {
		o.members, err = cache.Controlled[corev1.Pod](c.pods, o.set.Namespace, o.set.UID)
	}
	switch {
	case l.current != nil:
		return hashIn(l.current), err
	case known != "":
		return known, err
	}
	return pods.TemplateHash(&o.set.Spec.Template, o.set.Status.CollisionCount), err
}

// look reads the nodes that have to be considered, and those that the rollout may take.
func (c *Controller) look(o *observed, b *book, now time.Time) error {
	b.under(o.terms, func() placement { return placementOf(&o.set.Spec.Template, c.compares) })
	o.asked.placement = b.placement()
	var names []string
	names, o.whole, o.at = b.marked(now)
	var err error
	if o.whole {
		if names, err = c.everywhere(o.set, names); err != nil {
			return err
		}
	}
	if o.views, err = c.view(o, names, now); err != nil {
		return err
	}
	o.others = b.besides(names)
	if o.asked.rolls && !o.whole {
		err = c.candidates(o, b, names, now)
	}
	if c.patient {
		o.backOff()
	}
	return err
}

// candidates reads as many nodes as there can be room for, whatever is found of those
// that are considered before.
func (c *Controller) candidates(o *observed, b *book, looked []string, now time.Time) error {
	limits, err := boundsOf(o.set, o.others.sums.desired+len(looked))
	if err != nil {
		return nil // the plan says so
	}
	waiting, leaving := allowance(limits, o.others.sums)
	if limits.surge > 0 {
		leaving += len(looked)
	}
	read := func(n int, from func(*book) names) ([]candidate, error) {
		var found []candidate
		for _, e := range b.inTurn(n, from, looked) {
			views, err := c.view(o, []string{e.node}, now)
			if err != nil {
				return nil, err
			}
			found = append(found, candidate{view: &views[0], before: e.nodeState})
		}
		return found, nil
	}
	var failed error
	o.waiting, err = read(waiting, func(b *book) names { return b.waiting })
	o.leaving, failed = read(leaving, func(b *book) names { return b.leaving })
	return errors.Join(err, failed)
}

// failures names the backoff of a node; another template has one of its own.
func failures(ds *appsv1.DaemonSet, node string) string {
	return fmt.Sprintf("%s/%d/%s", ds.UID, ds.Generation, node)
}

// blocked says how long a failed pod of a node of this set has to wait from now.
func (c *Controller) blocked(set *appsv1.DaemonSet, now time.Time) func(node string) time.Duration {
	return func(node string) time.Duration {
		id := failures(set, node)
		if !c.backoffs.IsInBackOffSinceUpdate(id, now) {
			return 0
		}
		return c.backoffs.Get(id)
	}
}

// node is nil when there is none of this name.
func (c *Controller) node(name string) *corev1.Node {
	node, _ := c.nodes.Get(name)
	return node
}

// view reads these nodes and the pods there.
func (c *Controller) view(o *observed, names []string, now time.Time) ([]view, error) {
	views := make([]view, 0, len(names))
	for _, name := range names {
		here, err := cache.Lookup[corev1.Pod](c.pods, byNode, onNode(o.set.Namespace, o.set.UID, name))
		if err != nil {
			return nil, err
		}
		views = append(views, viewOf(name, c.node(name), here, c.blocked(o.set, now)))
	}
	return views, nil
}

// everywhere is all nodes, those that pods name, and those given, in order.
func (c *Controller) everywhere(set *appsv1.DaemonSet, names []string) ([]string, error) {
	all, err := cache.Controlled[corev1.Pod](c.pods, set.Namespace, set.UID)
	if err != nil {
		return nil, err
	}
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	for _, pod := range all {
		names = append(names, nodeOf(pod))
	}
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// viewOf looks the backoff of a node up only if a pod there has failed.
func viewOf(name string, node *corev1.Node, here []*corev1.Pod, blocked func(node string) time.Duration) view {
	v := view{name: name, node: node, pods: here}
	if slices.ContainsFunc(here, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed }) {
		v.blocked = blocked(name)
	}
	return v
}
