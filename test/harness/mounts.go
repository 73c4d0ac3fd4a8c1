package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/test/csi"
)

// managedAnnotation has the controller manager attach the volumes of a node.
const managedAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach"

// mounts is what the kubelets and the scheduler know of volumes.
type mounts struct {
	kubelet *Kubelet
	csi.PodVolumes
	classes storagelisters.StorageClassLister
	stop    func()

	// mu also makes one write at a time of what nodes use.
	mu sync.Mutex
	// used are the volumes of pods, by node and UID of the pod.
	used map[string]map[types.UID]mounted
	// written is what a node has been said to use, by its UID.
	written map[types.UID][]string
}

// mounted are the volumes that a pod uses on its node, as nodes call them.
type mounted struct {
	namespace, pod string
	volumes        []string
}

// MountVolumes makes nodes that have their volumes attached by the controller
// manager, and has pods wait for their volumes where Care says so. It is on
// until UnmountVolumes.
func (k *Kubelet) MountVolumes(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mounts != nil {
		return nil
	}
	factory := informers.NewSharedInformerFactory(k.client, 0)
	core, storage := factory.Core().V1(), factory.Storage().V1()
	m := &mounts{
		kubelet: k, used: map[string]map[types.UID]mounted{}, written: map[types.UID][]string{},
		PodVolumes: csi.PodVolumesOf(factory), classes: storage.StorageClasses().Lister(),
	}
	// What a pod has waited for may be there.
	changed := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { k.enqueueWaiting("") },
		UpdateFunc: func(any, any) { k.enqueueWaiting("") },
	}
	for _, informer := range []cache.SharedIndexInformer{core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer()} {
		if _, err := informer.AddEventHandler(changed); err != nil {
			return fmt.Errorf("watch claims and volumes: %w", err)
		}
	}
	running, cancel := context.WithCancel(context.Background())
	m.stop = func() {
		cancel()
		factory.Shutdown()
	}
	factory.Start(running.Done())
	factory.WaitForCacheSync(ctx.Done())
	k.mounts = m
	for name := range k.pretend {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, managedAnnotation)
		if _, err := k.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("have the volumes of node %s attached: %w", name, err)
		}
	}
	return nil
}

// UnmountVolumes ends what MountVolumes has begun.
func (k *Kubelet) UnmountVolumes() {
	k.mu.Lock()
	m := k.mounts
	k.mounts = nil
	k.mu.Unlock()
	if m != nil {
		m.stop()
	}
}

func (k *Kubelet) mounting() *mounts {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mounts
}

// enqueueWaiting has the pods looked at that do not run yet: those of a node, or all.
func (k *Kubelet) enqueueWaiting(node string) {
	pods, _ := k.pods.List(labels.Everything())
	for _, pod := range pods {
		if (node == "" || pod.Spec.NodeName == node) && pod.Status.Phase == corev1.PodPending {
			k.enqueue(pod)
		}
	}
}

// mount reports whether the volumes of a pod are there for it to start. It says
// in the status of the node that they are in use, and only then looks whether
// they are attached.
func (m *mounts) mount(ctx context.Context, pod *corev1.Pod) (bool, error) {
	names, bound := m.Names(pod)
	if !bound {
		return false, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	node := pod.Spec.NodeName
	if m.used[node] == nil {
		m.used[node] = map[types.UID]mounted{}
	}
	m.used[node][pod.UID] = mounted{namespace: pod.Namespace, pod: pod.Name, volumes: names}
	if err := m.report(ctx, node); err != nil {
		return false, err
	}
	current, err := m.kubelet.nodes.Get(node)
	if err != nil {
		return false, fmt.Errorf("get node %s: %w", node, err)
	}
	for _, name := range names {
		if !slices.ContainsFunc(current.Status.VolumesAttached, func(v corev1.AttachedVolume) bool { return string(v.Name) == name }) {
			return false, nil
		}
	}
	return true, nil
}

// unmount lets go of the volumes of pods that are gone or have ended, except on
// nodes that are silent and in namespaces that are slow to unmount.
func (m *mounts) unmount(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for node, pods := range m.used {
		if m.kubelet.silent(node) {
			continue
		}
		maps.DeleteFunc(pods, func(uid types.UID, used mounted) bool {
			pod, err := m.kubelet.pods.Pods(used.namespace).Get(used.pod)
			there := err == nil && pod.UID == uid && !finished(pod)
			return !there && !m.kubelet.caresFor(used.namespace).SlowUnmount
		})
		if err := m.report(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// report writes what a node uses, where it has changed.
func (m *mounts) report(ctx context.Context, name string) error {
	node, err := m.kubelet.nodes.Get(name)
	if err != nil {
		return nil
	}
	inUse := []string{}
	for _, used := range m.used[name] {
		inUse = append(inUse, used.volumes...)
	}
	slices.Sort(inUse)
	inUse = slices.Compact(inUse)
	if slices.Equal(inUse, m.written[node.UID]) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": node.UID}, "status": map[string]any{"volumesInUse": inUse}})
	if err != nil {
		return fmt.Errorf("encode the volumes of node %s: %w", name, err)
	}
	_, err = m.kubelet.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("report the volumes of node %s: %w", name, err)
	}
	m.written[node.UID] = inUse
	return nil
}
