package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/csi"
)

func init() {
	register(&scenario{
		name: "attach", order: 16, quick: 8 * time.Minute, full: 60 * time.Minute,
		about: "Pods with a volume each are there when the process starts, which attaches all of them. Then nodes report their status at a steady rate, as kubelets do, and nothing else happens. Then a tenth of the pods go, and their volumes are detached. The attacher of the driver answers at once.",
		sizes: []size{
			{"nodes", 3000, 30, "nodes of attach"},
			{"volumes", 10000, 100, "attached volumes, one for each pod"},
			{"updates", 50, 50, "status updates of nodes a second"},
			{"seconds", 60, 15, "how long they are sent"},
		},
		stages: stages,
		run:    runAttach,
	})
}

const benchDriver = "bench.example.com"

func runAttach(ctx context.Context, w *world) error {
	count := w.sizes["volumes"]
	w.watch(ctx)
	if err := w.furnishNodes(ctx, w.sizes["nodes"]); err != nil {
		return err
	}
	if err := w.mountedPods(ctx, count); err != nil {
		return err
	}
	driver, err := csi.Start(w.load(), benchDriver, csi.Attacher)
	if err != nil {
		return err
	}
	defer driver.Stop()
	if err := w.attachAll(ctx, count); err != nil {
		return err
	}
	if err := w.useAll(ctx, count); err != nil {
		return err
	}
	if err := pause(ctx, w.settling()); err != nil {
		return err
	}
	if err := w.report(ctx); err != nil {
		return err
	}
	return w.detachSome(ctx, max(1, count/10))
}

// furnishNodes adds nodes whose volumes the controller manager attaches.
func (w *world) furnishNodes(ctx context.Context, count int) error {
	if err := w.AddNodes(ctx, count); err != nil {
		return err
	}
	nodes := w.load().CoreV1().Nodes()
	return parallel(ctx, workers, count, func(i int) error {
		_, err := nodes.Patch(ctx, nodeName(i), types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"volumes.kubernetes.io/controller-managed-attach-detach":"true"}}}`), metav1.PatchOptions{})
		return err
	})
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// mountedPods makes pods on nodes with a volume each, bound already.
func (w *world) mountedPods(ctx context.Context, count int) error {
	w.say("%d pods with a volume", count)
	if err := w.addNamespace(ctx, namespace); err != nil {
		return err
	}
	client, nodes := w.load().CoreV1(), w.sizes["nodes"]
	// No controller manager runs that would make it.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := client.ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the default service account: %w", err)
	}
	return parallel(ctx, workers, count, func(i int) error {
		name := fmt.Sprintf("pod-%d", i)
		if err := w.boundPair(ctx, client, name); err != nil {
			return err
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: template(name, firstImage).Spec}
		pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = nodeName(i%nodes), new(int64)
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
		_, err := client.Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

// boundPair makes a volume and a claim as the binder leaves them.
func (w *world) boundPair(ctx context.Context, client corev1client.CoreV1Interface, name string) error {
	claim := claimFor(name)
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	claim, err := client.PersistentVolumeClaims(namespace).Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	volume, err := client.PersistentVolumes().Create(ctx, volumeFor(name, claim.UID), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	volume.Status.Phase = corev1.VolumeBound
	if _, err := client.PersistentVolumes().UpdateStatus(ctx, volume, metav1.UpdateOptions{}); err != nil {
		return err
	}
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: volume.Spec.AccessModes, Capacity: volume.Spec.Capacity}
	_, err = client.PersistentVolumeClaims(namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

// attachAll starts the process and waits until all is attached and nodes say so.
func (w *world) attachAll(ctx context.Context, count int) error {
	attached, err := w.expect(ctx, "volumes are attached", count, w.watches.Storage().V1().VolumeAttachments().Informer(), func(object any) string {
		if va, ok := object.(*storagev1.VolumeAttachment); ok && va.Status.Attached {
			return va.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	nodes := min(count, w.sizes["nodes"])
	told, err := w.expect(ctx, "nodes have all their volumes", nodes, w.watches.Core().V1().Nodes().Informer(), func(object any) string {
		node, ok := object.(*corev1.Node)
		if ok && len(node.Status.VolumesAttached) >= count/w.sizes["nodes"] && len(node.Status.VolumesAttached) > 0 {
			return node.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	return w.step(ctx, report.Step{Name: "attach", Objects: count, Unit: "volume"}, func(ctx context.Context) ([]report.Latency, error) {
		if err := w.start(ctx, "--leader-elect=false"); err != nil {
			return nil, err
		}
		took, err := attached.wait(ctx)
		_, waited := told.wait(ctx)
		return []report.Latency{report.Latencies("start to attached", took)}, errors.Join(err, waited)
	})
}

// volumesOf are the volumes of the pods of a node from the first on, as nodes call them.
func (w *world) volumesOf(node, first, count int) []string {
	names := []string{}
	for i := node; i < count; i += w.sizes["nodes"] {
		if i >= first {
			names = append(names, csi.UniqueName(benchDriver, fmt.Sprintf("pod-%d", i)))
		}
	}
	return names
}

// useAll has the nodes say that they use the volumes of their pods.
func (w *world) useAll(ctx context.Context, count int) error {
	client := w.load().CoreV1().Nodes()
	return parallel(ctx, workers, min(count, w.sizes["nodes"]), func(i int) error {
		return use(ctx, client, i, w.volumesOf(i, 0, count))
	})
}

func use(ctx context.Context, client corev1client.NodeInterface, node int, volumes []string) error {
	_, err := client.Patch(ctx, nodeName(node), types.StrategicMergePatchType,
		[]byte(encoded(map[string]any{"status": map[string]any{"volumesInUse": volumes}})), metav1.PatchOptions{}, "status")
	return err
}

// report has nodes report their status, as kubelets do, one after the other.
func (w *world) report(ctx context.Context) error {
	rate, seconds, client := w.sizes["updates"], w.sizes["seconds"], w.load().CoreV1().Nodes()
	err := w.step(ctx, report.Step{Name: "nodes report", Objects: rate * seconds, Unit: "update", Fixed: true}, func(ctx context.Context) ([]report.Latency, error) {
		return nil, paced(ctx, rate*seconds, rate, func(i int) error {
			now := metav1.Now()
			_, err := client.Patch(ctx, nodeName(i%w.sizes["nodes"]), types.StrategicMergePatchType, []byte(encoded(map[string]any{"status": map[string]any{
				"conditions": []any{map[string]any{"type": "Ready", "lastHeartbeatTime": now}}}})), metav1.PatchOptions{}, "status")
			return err
		})
	})
	if err != nil {
		return err
	}
	last := &w.result.Steps[len(w.result.Steps)-1]
	cores := last.CPU.Total() / (last.Seconds + tail.Seconds())
	last.Figures = []report.Figure{{Name: "cores in use", Value: cores}}
	w.say("%.3f cores in use", cores)
	return nil
}

// detachSome deletes the first pods and waits until their volumes are detached.
func (w *world) detachSome(ctx context.Context, count int) error {
	all := w.sizes["volumes"]
	gone, err := w.expectGone(ctx, "attachments are gone", count, w.watches.Storage().V1().VolumeAttachments().Informer(), func(object any) string {
		if va, ok := object.(*storagev1.VolumeAttachment); ok {
			return *va.Spec.Source.PersistentVolumeName
		}
		return ""
	})
	if err != nil {
		return err
	}
	client := w.load().CoreV1()
	return w.step(ctx, report.Step{Name: "detach", Objects: count, Unit: "volume"}, func(ctx context.Context) ([]report.Latency, error) {
		err := parallel(ctx, workers, count, func(i int) error {
			name := fmt.Sprintf("pod-%d", i)
			gone.ask(name)
			if err := client.Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
				return err
			}
			node := i % w.sizes["nodes"]
			return use(ctx, client.Nodes(), node, w.volumesOf(node, count, all))
		})
		took, waited := gone.wait(ctx)
		return []report.Latency{report.Latencies("pod deleted to detached", took)}, errors.Join(err, waited)
	})
}

func encoded(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(out)
}
