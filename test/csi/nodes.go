package csi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const byNode = "byNode"

// Nodes says for the nodes of a cluster which volumes they use, where somebody
// else plays the nodes and their pods: those of all pods that have not ended.
type Nodes struct {
	client kubernetes.Interface
	nodes  corelisters.NodeLister
	pods   cache.Indexer
	names  PodVolumes
	queue  workqueue.TypedRateLimitingInterface[string]
	stop   func()
}

// StartNodes begins; it ends with Stop.
func StartNodes(client kubernetes.Interface) (*Nodes, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	n := &Nodes{
		client: client, nodes: core.Nodes().Lister(), pods: core.Pods().Informer().GetIndexer(), names: PodVolumesOf(factory),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](20*time.Millisecond, time.Second)),
	}
	err := core.Pods().Informer().AddIndexers(cache.Indexers{byNode: func(obj any) ([]string, error) {
		pod, ok := obj.(*corev1.Pod)
		if !ok || pod.Spec.NodeName == "" {
			return nil, nil
		}
		return []string{pod.Spec.NodeName}, nil
	}})
	for _, informer := range []cache.SharedIndexInformer{core.Pods().Informer(), core.Nodes().Informer(), core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer()} {
		_, watched := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: n.wake, UpdateFunc: func(_, obj any) { n.wake(obj) }, DeleteFunc: n.wake})
		err = errors.Join(err, watched)
	}
	if err != nil {
		return nil, fmt.Errorf("watch nodes and pods: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var worker sync.WaitGroup
	n.stop = sync.OnceFunc(func() {
		cancel()
		n.queue.ShutDown()
		factory.Shutdown()
		worker.Wait()
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	worker.Go(func() { n.work(ctx) })
	return n, nil
}

// Stop ends it; what was said last stays.
func (n *Nodes) Stop() { n.stop() }

// wake looks at the node that something is about; at all of them after a change
// of a claim or a volume.
func (n *Nodes) wake(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	switch obj := obj.(type) {
	case *corev1.Pod:
		if obj.Spec.NodeName != "" {
			n.queue.Add(obj.Spec.NodeName)
		}
	case *corev1.Node:
		n.queue.Add(obj.Name)
	default:
		for _, name := range n.pods.ListIndexFuncValues(byNode) {
			n.queue.Add(name)
		}
	}
}

func (n *Nodes) work(ctx context.Context) {
	for {
		name, down := n.queue.Get()
		if down {
			return
		}
		if err := n.sync(ctx, name); err == nil || ctx.Err() != nil {
			n.queue.Forget(name)
		} else {
			n.queue.AddRateLimited(name)
		}
		n.queue.Done(name)
	}
}

func (n *Nodes) sync(ctx context.Context, name string) error {
	node, err := n.nodes.Get(name)
	if err != nil {
		// It is gone, and with it what it used.
		return nil
	}
	pods, err := n.pods.ByIndex(byNode, name)
	if err != nil {
		return fmt.Errorf("find the pods of node %s: %w", name, err)
	}
	inUse := []corev1.UniqueVolumeName{}
	for _, obj := range pods {
		pod, ok := obj.(*corev1.Pod)
		if !ok || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		names, _ := n.names.Names(pod)
		for _, volume := range names {
			inUse = append(inUse, corev1.UniqueVolumeName(volume))
		}
	}
	slices.Sort(inUse)
	if inUse = slices.Compact(inUse); slices.Equal(inUse, node.Status.VolumesInUse) {
		return nil
	}
	patch, err := json.Marshal(object{"metadata": object{"uid": node.UID}, "status": object{"volumesInUse": inUse}})
	if err != nil {
		return fmt.Errorf("encode the volumes of node %s: %w", name, err)
	}
	if _, err := n.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("report the volumes of node %s: %w", name, err)
	}
	return nil
}
