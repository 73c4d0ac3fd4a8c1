package daemonset

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// byNode finds the pods that a set controls on one node, or made for it.
var byNode = cache.NewIndex("daemonSetNode", func(object any) ([]string, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, nil
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && ref.Kind == kind.Kind {
		return []string{onNode(ref.UID, nodeOf(pod))}, nil
	}
	return nil, nil
})

func onNode(set types.UID, node string) string { return string(set) + "/" + node }

// open brings the book in line with the set, and returns what nodes are judged by.
func (c *Controller) open(b *book, ds *appsv1.DaemonSet, selector labels.Selector, hash string) *question {
	b.under(terms{ds.UID, ds.Generation, hash}, func() placement { return placementOf(&ds.Spec.Template, c.compares) })
	now := c.clock.Now()
	q := &question{
		placement: b.placement(), selector: selector, minReady: ds.Spec.MinReadySeconds,
		hash: hash, generation: templateGeneration(ds), rolls: rolls(ds), surges: surges(ds), now: now,
		blocked: func(node string) time.Duration { return c.blocked(failures(ds, node), now) },
	}
	if c.patient {
		q.patience = &patience{troubled: func() int { return b.totals().troubled }}
	}
	return q
}

// failures names the backoff of a node; another template starts anew.
func failures(ds *appsv1.DaemonSet, node string) string {
	return fmt.Sprintf("%s/%d/%s", ds.UID, ds.Generation, node)
}

// blocked is how long a failed pod has to wait from now.
func (c *Controller) blocked(id string, now time.Time) time.Duration {
	if !c.backoffs.IsInBackOffSinceUpdate(id, now) {
		return 0
	}
	return c.backoffs.Get(id)
}

// node is nil when there is none of this name.
func (c *Controller) node(name string) (*corev1.Node, error) {
	node, err := c.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read node %s: %w", name, err)
	}
	return node, nil
}

// judgeMarked judges the nodes that changed, or all of them, and notes the verdicts.
func (c *Controller) judgeMarked(b *book, q *question, set types.UID) (map[string]*verdict, error) {
	marked, whole := b.take(q.now)
	if whole {
		fresh, err := c.judgeAll(b, q, set, marked)
		if err != nil {
			b.markAll()
		}
		return fresh, err
	}
	fresh := make(map[string]*verdict, len(marked))
	for _, name := range marked {
		v, err := c.judge(b, q, set, name)
		if err != nil {
			b.markAll()
			return nil, err
		}
		fresh[name] = v
	}
	return fresh, nil
}

// judge judges one node by the caches.
func (c *Controller) judge(b *book, q *question, set types.UID, name string) (*verdict, error) {
	node, err := c.node(name)
	if err != nil {
		return nil, err
	}
	here, err := cache.Lookup[corev1.Pod](c.pods, byNode, onNode(set, name))
	if err != nil {
		return nil, err
	}
	v := q.judge(name, node, here)
	b.note(name, &v)
	return &v, nil
}

// judgeAll judges all nodes, those that pods name, and those given.
func (c *Controller) judgeAll(b *book, q *question, set types.UID, also []string) (map[string]*verdict, error) {
	all, err := cache.Lookup[corev1.Pod](c.pods, cache.ByController, string(set))
	if err != nil {
		return nil, err
	}
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	if q.patience != nil {
		q.patience.listed = troubledOf(all)
	}
	here, exist := make(map[string][]*corev1.Pod, len(nodes)), make(map[string]*corev1.Node, len(nodes))
	for _, pod := range all {
		here[nodeOf(pod)] = append(here[nodeOf(pod)], pod)
	}
	for _, name := range also {
		exist[name] = nil
	}
	for name := range here {
		exist[name] = nil
	}
	for _, node := range nodes {
		exist[node.Name] = node
	}
	fresh := map[string]*verdict{}
	for name, node := range exist {
		v := q.judge(name, node, here[name])
		b.note(name, &v)
		if v.acts() {
			fresh[name] = &v
		}
	}
	return fresh, nil
}

// rollOut adds to an idle plan what the rollout may do now.
func (c *Controller) rollOut(b *book, q *question, ds *appsv1.DaemonSet, fresh map[string]*verdict, p *plan) error {
	totals := b.totals()
	limits, err := boundsOf(ds, totals.desired)
	if err != nil {
		return err
	}
	waiting, parting := allowance(limits, totals)
	picked := map[string]*verdict{}
	for _, name := range append(b.some(waiting, false), b.some(parting, true)...) {
		if picked[name], err = c.judge(b, q, ds.UID, name); err != nil {
			return err
		}
		b.mark(name)
	}
	p.roll(fresh, picked, q.surges)
	return nil
}

// settleHistory sees to it that the present template has its revision, the latest
// one, and returns the others and its hash. When it cannot go on the result says why.
func (c *Controller) settleHistory(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, selector labels.Selector) (lineage, string, runner.Result, bool) {
	stop := func(err error) (lineage, string, runner.Result, bool) {
		return lineage{}, "", runner.Done(err), false
	}
	data, err := c.book(key).dataFor(terms{uid: ds.UID, generation: ds.Generation}, func() ([]byte, error) { return revisions.DataOf(&ds.Spec.Template) })
	if err != nil {
		return stop(err)
	}
	claims, err := revisions.Claims(c.revisions, ds, selector)
	if err != nil {
		return stop(err)
	}
	mine, err := c.history.Claim(ctx, key, ds, claims, c.live(key))
	if err != nil {
		return stop(err)
	}
	if mine, err = c.labelled(ctx, key, mine); err != nil {
		return stop(err)
	}
	l := lineageOf(data, mine)
	if l.current == nil {
		hash := pods.TemplateHash(&ds.Spec.Template, ds.Status.CollisionCount)
		l.current, err = c.snapshot(ctx, key, ds, newRevision(ds, hash, data, l.number))
	} else {
		l.current, err = c.align(ctx, key, ds, l)
	}
	if err != nil || l.current == nil {
		return stop(err)
	}
	return l, l.current.Labels[hashLabel], runner.Result{}, true
}
