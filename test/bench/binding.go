package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func init() {
	register(&scenario{
		name: "binding", order: 15, quick: 6 * time.Minute, full: 45 * time.Minute,
		about: "Pairs of a volume and a claim that name each other are created at a steady rate, while each request of the controller manager takes longer on its way. The time runs from the creation of a claim until it is Bound. Then the same with many Released volumes present.",
		sizes: []size{
			{"pairs", 1000, 100, "pairs of binding, each time"},
			{"rate", 100, 50, "pairs a second"},
			{"delay", 10, 10, "milliseconds that are added to each request"},
			{"released", 20000, 300, "Released volumes of the second time"},
		},
		run: runBinding,
	})
}

func runBinding(ctx context.Context, w *world) error {
	w.watch(ctx)
	slow, line, err := w.SlowKubeconfig(time.Duration(w.sizes["delay"]) * time.Millisecond)
	if err != nil {
		return err
	}
	defer line.Close()
	args := []string{"--leader-elect=false", "--kubeconfig=" + slow}
	if err := w.start(ctx, args...); err != nil {
		return err
	}
	if err := w.newNamespace(ctx, namespace); err != nil {
		return err
	}
	if err := pause(ctx, w.settling()); err != nil {
		return err
	}
	if err := w.bindPairs(ctx, "pairs", "pair"); err != nil {
		return err
	}
	// They are there before the process starts, as in a cluster that has grown old.
	w.measured().Kill()
	if err := w.release(ctx, w.sizes["released"]); err != nil {
		return err
	}
	if err := w.start(ctx, args...); err != nil {
		return err
	}
	if err := pause(ctx, w.settling()); err != nil {
		return err
	}
	return w.bindPairs(ctx, "pairs beside Released volumes", "late")
}

// bindPairs creates pairs at the rate and waits until all are bound.
func (w *world) bindPairs(ctx context.Context, step, prefix string) error {
	count := w.sizes["pairs"]
	bound, err := w.expect(ctx, "claims are Bound", count, w.watches.Core().V1().PersistentVolumeClaims().Informer(), func(object any) string {
		claim, ok := object.(*corev1.PersistentVolumeClaim)
		if !ok || claim.Status.Phase != corev1.ClaimBound || claim.Labels["of"] != prefix {
			return ""
		}
		return claim.Name
	})
	if err != nil {
		return err
	}
	mark, client := w.Audit.Mark(), w.load().CoreV1()
	if err := w.step(ctx, report.Step{Name: step, Objects: count, Unit: "pair"}, func(ctx context.Context) ([]report.Latency, error) {
		var answers stopwatch
		err := paced(ctx, count, w.sizes["rate"], func(i int) error { return createPair(ctx, client, prefix, i, bound, &answers) })
		took, waited := bound.wait(ctx)
		return []report.Latency{report.Latencies("created to Bound", took), report.Latencies("create of the load answered", answers.took)}, errors.Join(err, waited)
	}); err != nil {
		return err
	}
	w.addFigures(binderFigures(w.Audit.All(mark), count))
	return nil
}

// paced calls do for 0 to count-1, so many times a second, whatever each takes.
func paced(ctx context.Context, count, rate int, do func(i int) error) error {
	tick := time.NewTicker(time.Second / time.Duration(max(1, rate)))
	defer tick.Stop()
	errs := make(chan error, count)
	for i := range count {
		go func() { errs <- do(i) }()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	var all error
	for range count {
		all = errors.Join(all, <-errs)
	}
	if all != nil {
		return fmt.Errorf("put on the load: %w", all)
	}
	return nil
}

// stopwatch notes how long calls took.
type stopwatch struct {
	sync.Mutex
	took []time.Duration
}

func (s *stopwatch) time(do func() error) error {
	began := time.Now()
	err := do()
	s.Lock()
	defer s.Unlock()
	s.took = append(s.took, time.Since(began))
	return err
}

// createPair creates a volume and a claim that name each other. How soon the API server
// answers says how much of the time to Bound is its own.
func createPair(ctx context.Context, client corev1client.CoreV1Interface, prefix string, i int, bound *expectation, answers *stopwatch) error {
	name := fmt.Sprintf("%s-%d", prefix, i)
	if err := answers.time(func() error {
		_, err := client.PersistentVolumes().Create(ctx, volumeFor(name, ""), metav1.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	claim := claimFor(name)
	claim.Labels = map[string]string{"of": prefix}
	bound.ask(name)
	return answers.time(func() error {
		_, err := client.PersistentVolumeClaims(namespace).Create(ctx, claim, metav1.CreateOptions{})
		return err
	})
}

// volumeFor is a volume of a driver that nobody runs, for the claim of its name.
func volumeFor(name string, claimUID types.UID) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name, UID: claimUID},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: benchDriver, VolumeHandle: name}},
		},
	}
}

// claimFor is a claim for the volume of its name.
func claimFor(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(string), VolumeName: name,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// release makes volumes whose claims are gone.
func (w *world) release(ctx context.Context, count int) error {
	w.say("%d Released volumes", count)
	client := w.load().CoreV1().PersistentVolumes()
	return parallel(ctx, workers, count, func(i int) error {
		volume, err := client.Create(ctx, volumeFor(fmt.Sprintf("old-%d", i), types.UID(fmt.Sprintf("gone-%d", i))), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		volume.Status.Phase = corev1.VolumeReleased
		_, err = client.UpdateStatus(ctx, volume, metav1.UpdateOptions{})
		return err
	})
}

// binderFigures are what the binder wrote, and how often any controller wrote
// what another had changed before.
func binderFigures(events iter.Seq[harness.TimedAuditEvent], pairs int) []report.Figure {
	writes, conflicts, seen := 0, 0, map[string]bool{}
	for event := range events {
		if seen[event.AuditID] || !event.Write() {
			continue
		}
		seen[event.AuditID] = true
		if event.Controller() == "persistent-volume-binder" {
			writes++
		}
		if event.ResponseStatus.Code == http.StatusConflict {
			conflicts++
		}
	}
	return []report.Figure{
		{Name: "binder's writes a pair", Value: float64(writes) / float64(max(1, pairs))},
		{Name: "conflicts of all controllers", Value: float64(conflicts)},
	}
}
