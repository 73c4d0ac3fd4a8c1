package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const (
	graphs  = 200
	kills   = 20
	members = 10
)

func collectorOnly(t testing.TB, cp *harness.ControlPlane) *harness.Manager {
	return cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--controllers=garbage-collector-controller"}})
}

func ownedBy(name string, uid types.UID, blocks bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: uid, BlockOwnerDeletion: &blocks}
}

func configMap(ctx context.Context, client kubernetes.Interface, namespace, name string, owners ...metav1.OwnerReference) (*corev1.ConfigMap, error) {
	return client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}, metav1.CreateOptions{})
}

// family is a random graph of ConfigMaps in one namespace, and what was done to it.
type family struct {
	client    kubernetes.Interface
	rand      *rand.Rand
	namespace string
	foreign   types.UID
	made      []*corev1.ConfigMap
	deleted   map[types.UID]metav1.DeletionPropagation
}

// grow makes the graph: owners that are there, never were, are elsewhere, or of no
// known kind, and a canary that goes when the collector has seen all before it.
func (f *family) grow(ctx context.Context) error {
	for i := range members {
		var refs []metav1.OwnerReference
		for range f.rand.IntN(3) {
			switch n := f.rand.IntN(12); {
			case n == 0:
				refs = append(refs, ownedBy("never", types.UID(fmt.Sprintf("never-%d", f.rand.IntN(3))), true))
			case n == 1:
				refs = append(refs, ownedBy("foreign", f.foreign, false))
			case i > 0:
				owner := f.made[f.rand.IntN(i)]
				refs = append(refs, ownedBy(owner.Name, owner.UID, f.rand.IntN(2) == 0))
			}
		}
		made, err := configMap(ctx, f.client, f.namespace, fmt.Sprintf("m%d", i), unique(refs)...)
		if err != nil {
			return err
		}
		f.made = append(f.made, made)
	}
	if err := f.close(ctx); err != nil {
		return err
	}
	_, err := configMap(ctx, f.client, f.namespace, "canary", ownedBy("canary-owner", "no-such-owner", false))
	return err
}

// close lets an early member be owned by a late one, so that some graphs have cycles.
func (f *family) close(ctx context.Context) error {
	if f.rand.IntN(3) != 0 {
		return nil
	}
	early, late := f.made[f.rand.IntN(3)], f.made[members-1-f.rand.IntN(3)]
	now, err := f.client.CoreV1().ConfigMaps(f.namespace).Get(ctx, early.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	now.OwnerReferences = unique(append(now.OwnerReferences, ownedBy(late.Name, late.UID, true)))
	if now, err = f.client.CoreV1().ConfigMaps(f.namespace).Update(ctx, now, metav1.UpdateOptions{}); err == nil {
		*early = *now
	} else if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = nil // the collector was there first
	}
	return err
}

func unique(refs []metav1.OwnerReference) []metav1.OwnerReference {
	seen := map[types.UID]bool{}
	var kept []metav1.OwnerReference
	for _, r := range refs {
		if !seen[r.UID] {
			seen[r.UID] = true
			kept = append(kept, r)
		}
	}
	return kept
}

// prune deletes some members, in all three ways.
func (f *family) prune(ctx context.Context) error {
	policies := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}
	for range 1 + f.rand.IntN(4) {
		o, policy := f.made[f.rand.IntN(len(f.made))], policies[f.rand.IntN(3)]
		if _, again := f.deleted[o.UID]; again {
			continue
		}
		err := f.client.CoreV1().ConfigMaps(f.namespace).Delete(ctx, o.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &o.UID}, PropagationPolicy: &policy})
		if err == nil {
			f.deleted[o.UID] = policy
		} else if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// settled fails while something is left that should go.
func (f *family) settled(ctx context.Context) error {
	list, err := f.client.CoreV1().ConfigMaps(f.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	here := map[types.UID]bool{}
	for i := range list.Items {
		here[list.Items[i].UID] = true
	}
	for i := range list.Items {
		o := &list.Items[i]
		if o.DeletionTimestamp != nil {
			return fmt.Errorf("%s/%s is still being deleted: %v", f.namespace, o.Name, o.Finalizers)
		}
		for _, ref := range o.OwnerReferences {
			if !here[ref.UID] {
				return fmt.Errorf("%s/%s still names %s, which is gone", f.namespace, o.Name, ref.Name)
			}
		}
	}
	return f.justified(here)
}

// justified finds members that are gone and should not be: nobody deleted them,
// and an owner is there, or they had none, or were to be kept.
func (f *family) justified(here map[types.UID]bool) error {
	roots := map[types.UID]bool{}
	for _, o := range f.made {
		roots[o.UID] = len(o.OwnerReferences) == 0
	}
	for _, o := range f.made {
		if _, deleted := f.deleted[o.UID]; here[o.UID] || deleted {
			continue
		}
		kept := true
		for _, ref := range o.OwnerReferences {
			if here[ref.UID] {
				return fmt.Errorf("%s/%s was collected although its owner %s is there", f.namespace, o.Name, ref.Name)
			}
			kept = kept && roots[ref.UID] && f.deleted[ref.UID] == metav1.DeletePropagationOrphan
		}
		if kept {
			return fmt.Errorf("%s/%s was collected although it had no owner, or only such as left it behind", f.namespace, o.Name)
		}
	}
	return nil
}

func (f *family) canaryGone(ctx context.Context) error {
	_, err := f.client.CoreV1().ConfigMaps(f.namespace).Get(ctx, "canary", metav1.GetOptions{})
	if err == nil {
		return fmt.Errorf("%s: the canary is there", f.namespace)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// each does something with every family, some at a time.
func each(t *testing.T, families []*family, do func(*family) error) {
	t.Helper()
	var all sync.WaitGroup
	for lane := range 8 {
		all.Go(func() {
			for i := lane; i < len(families); i += 8 {
				if err := do(families[i]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// TestCollectorAgainstModel deletes from hundreds of random graphs while the
// process is killed again and again.
func TestCollectorAgainstModel(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	m := collectorOnly(t, cp)
	foreign, err := configMap(t.Context(), client, "default", "foreign")
	if err != nil {
		t.Fatal(err)
	}
	families := make([]*family, graphs)
	for i := range families {
		families[i] = &family{client: client, rand: rand.New(rand.NewPCG(uint64(i), 1)), namespace: fmt.Sprintf("family-%d", i),
			foreign: foreign.UID, deleted: map[types.UID]metav1.DeletionPropagation{}}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: families[i].namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	each(t, families, func(f *family) error { return f.grow(t.Context()) })
	each(t, families, func(f *family) error { return harness.WaitFor(t.Context(), patient, f.canaryGone) })
	for kill := range kills {
		each(t, families[kill*graphs/kills:(kill+1)*graphs/kills], func(f *family) error { return f.prune(t.Context()) })
		if err := m.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	each(t, families, func(f *family) error { return harness.WaitFor(t.Context(), 2*patient, f.settled) })
}

// TestCollectorBehind lets the process miss seconds: it is stopped, owners go and
// come back under their names, what they own changes hands, and it goes on with
// what it knew.
func TestCollectorBehind(t *testing.T) {
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	m := collectorOnly(t, cp)
	maps := client.CoreV1().ConfigMaps("default")
	for round := range kills {
		owner, old, adopted := fmt.Sprintf("owner-%d", round), fmt.Sprintf("old-%d", round), fmt.Sprintf("adopted-%d", round)
		first, err := configMap(t.Context(), client, "default", owner)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{old, adopted} {
			if _, err := configMap(t.Context(), client, "default", name, ownedBy(owner, first.UID, true)); err != nil {
				t.Fatal(err)
			}
		}
		m.Process().Signal(syscall.SIGSTOP)
		if err := maps.Delete(t.Context(), owner, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		second, err := configMap(t.Context(), client, "default", owner)
		if err != nil {
			t.Fatal(err)
		}
		patch := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q}]}}`, owner, second.UID)
		if _, err := maps.Patch(t.Context(), adopted, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		m.Process().Signal(syscall.SIGCONT)
	}
	harness.Eventually(t, patient, func(ctx context.Context) error {
		for round := range kills {
			if _, err := maps.Get(ctx, fmt.Sprintf("old-%d", round), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("old-%d is there: %v", round, err)
			}
		}
		return nil
	})
	for round := range kills {
		if _, err := maps.Get(t.Context(), fmt.Sprintf("adopted-%d", round), metav1.GetOptions{}); err != nil {
			t.Errorf("what had changed hands was collected: %v", err)
		}
	}
}
