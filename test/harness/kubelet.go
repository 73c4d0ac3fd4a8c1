package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Kubelet pretends to be the scheduler and the kubelets of a cluster: it binds
// pods, runs them without containers, ends those that are being deleted, and
// keeps the nodes that it was told to make alive.
type Kubelet struct {
	client kubernetes.Interface
	pods   corelisters.PodLister
	nodes  corelisters.NodeLister
	queue  workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu sync.Mutex
	// care is how the pods of a namespace are looked after.
	care map[string]Care
	// fallback names the node that a namespace without any node gets.
	fallback map[string]string
	pretend  map[string]*node
	// mounts are the volumes, while MountVolumes is on.
	mounts *mounts
	lastIP int
}

// Care is how pods are looked after.
type Care struct {
	// On means that they are at all.
	On bool
	// Unbound leaves new pods without a node, SlowStart leaves those Pending that
	// have one, and SlowStop leaves those there that are being deleted.
	Unbound, SlowStart, SlowStop bool
	// Volumes has pods wait for their claims and volumes, as MountVolumes says.
	// SlowUnmount leaves volumes in use whose pods are gone.
	Volumes, SlowUnmount bool
	// Reject is the reason for which nodes reject pods; empty means they run them.
	Reject string
}

// StartKubelet starts a pretend kubelet. It looks after the namespaces that
// Serve names. The test's end stops it.
func StartKubelet(t testing.TB, config *rest.Config) *Kubelet {
	t.Helper()
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.UserAgent = "pretend-kubelet"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("make the kubelet's client: %v", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	k := &Kubelet{
		client:   client,
		pods:     factory.Core().V1().Pods().Lister(),
		nodes:    factory.Core().V1().Nodes().Lister(),
		care:     map[string]Care{},
		fallback: map[string]string{},
		pretend:  map[string]*node{},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](20*time.Millisecond, time.Second)),
	}
	if err := k.watch(factory); err != nil {
		t.Fatalf("watch pods and nodes: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		k.queue.ShutDown()
		factory.Shutdown()
		workers.Wait()
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for range 4 {
		workers.Go(func() { k.work(ctx) })
	}
	workers.Go(func() { k.heartbeat(ctx) })
	return k
}

func (k *Kubelet) watch(factory informers.SharedInformerFactory) error {
	_, podErr := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    k.enqueue,
		UpdateFunc: func(_, pod any) { k.enqueue(pod) },
		DeleteFunc: func(any) { k.enqueueUnmount() },
	})
	// A new or changed node may be the place for a pod that had none.
	_, nodeErr := factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { k.enqueueAll() },
		UpdateFunc: func(_, obj any) {
			k.enqueueUnbound()
			if node, ok := obj.(*corev1.Node); ok && k.mounting() != nil {
				k.enqueueWaiting(node.Name)
			}
		},
	})
	return errors.Join(podErr, nodeErr)
}

func (k *Kubelet) enqueue(obj any) {
	if pod, ok := obj.(*corev1.Pod); ok {
		k.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
}

func (k *Kubelet) enqueueAll() {
	pods, _ := k.pods.List(labels.Everything())
	for _, pod := range pods {
		k.enqueue(pod)
	}
}

func (k *Kubelet) enqueueUnbound() {
	pods, _ := k.pods.List(labels.Everything())
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			k.enqueue(pod)
		}
	}
}

// enqueueUnmount has those volumes unmounted whose pods are gone.
func (k *Kubelet) enqueueUnmount() { k.queue.Add(types.NamespacedName{}) }

// Serve looks after the pods of a namespace from now on, or no longer.
func (k *Kubelet) Serve(namespace string, on bool) {
	care := k.caresFor(namespace)
	care.On = on
	k.Tend(namespace, care)
}

// Tend looks after the pods of a namespace in this way from now on.
func (k *Kubelet) Tend(namespace string, care Care) {
	k.mu.Lock()
	k.care[namespace] = care
	k.mu.Unlock()
	k.enqueueAll()
	k.enqueueUnmount()
}

// Fallback makes the kubelet create this node when a pod of the namespace is
// to be bound while the cluster has no node at all.
func (k *Kubelet) Fallback(namespace, nodeName string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fallback[namespace] = nodeName
}

// Reject has nodes reject all pods of a namespace from now on, for this reason; with
// an empty one they run them again.
func (k *Kubelet) Reject(namespace, reason string) {
	care := k.caresFor(namespace)
	care.Reject = reason
	k.Tend(namespace, care)
}

func (k *Kubelet) caresFor(namespace string) Care {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.care[namespace]
}

// Forget drops what is known about a namespace.
func (k *Kubelet) Forget(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.care, namespace)
	delete(k.fallback, namespace)
}

func (k *Kubelet) work(ctx context.Context) {
	for {
		key, down := k.queue.Get()
		if down {
			return
		}
		err := k.sync(ctx, key)
		// A conflict or a missing pod means that an event is on its way.
		if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil {
			k.queue.Forget(key)
		} else {
			k.queue.AddRateLimited(key)
		}
		k.queue.Done(key)
	}
}

func (k *Kubelet) sync(ctx context.Context, key types.NamespacedName) error {
	if key == (types.NamespacedName{}) {
		if m := k.mounting(); m != nil {
			return m.unmount(ctx)
		}
		return nil
	}
	pod, err := k.pods.Pods(key.Namespace).Get(key.Name)
	care := k.caresFor(key.Namespace)
	if err != nil || !care.On {
		return err
	}
	starts := pod.Status.Phase == "" || pod.Status.Phase == corev1.PodPending
	switch {
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp != nil && len(pod.Finalizers) == 0:
		// Whoever was deleting it was killed between the two steps of that.
		return k.remove(ctx, pod)
	case pod.Spec.NodeName == "":
		if care.Unbound {
			return nil
		}
		return k.bind(ctx, pod)
	case k.silent(pod.Spec.NodeName), care.SlowStop && pod.DeletionTimestamp != nil:
		return nil
	case pod.DeletionTimestamp != nil:
		return k.end(ctx, pod)
	case starts && care.Reject != "":
		return k.updateStatus(ctx, reject(pod, care.Reject))
	case starts && !care.SlowStart:
		return k.start(ctx, pod, care)
	case finished(pod):
		k.enqueueUnmount()
	}
	return nil
}

// start runs a pod, once its volumes are mounted.
func (k *Kubelet) start(ctx context.Context, pod *corev1.Pod, care Care) error {
	if m := k.mounting(); m != nil && care.Volumes {
		if mounted, err := m.mount(ctx, pod); err != nil || !mounted {
			return err
		}
	}
	return k.updateStatus(ctx, run(pod, k.nextIP(), metav1.Now()))
}

func (k *Kubelet) nextIP() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lastIP++
	return fmt.Sprintf("10.244.%d.%d", k.lastIP/250%250, k.lastIP%250+1)
}

func (k *Kubelet) updateStatus(ctx context.Context, pod *corev1.Pod) error {
	_, err := k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update status of pod %s: %w", pod.Name, err)
	}
	return nil
}

// end kills the containers of a pod that is being deleted, then removes it. A
// controller may look at the result of a pod that is not always restarted, or
// that a finalizer keeps, so that is written first.
func (k *Kubelet) end(ctx context.Context, pod *corev1.Pod) error {
	told := pod.Spec.RestartPolicy != corev1.RestartPolicyAlways || len(pod.Finalizers) > 0
	if told && !finished(pod) {
		return k.updateStatus(ctx, finish(pod, Outcome{Phase: corev1.PodFailed, ExitCode: 137, ContainerReason: "Error"}, metav1.Now()))
	}
	if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0 {
		return nil
	}
	return k.remove(ctx, pod)
}

func (k *Kubelet) remove(ctx context.Context, pod *corev1.Pod) error {
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64),
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
	if err != nil {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return nil
}
