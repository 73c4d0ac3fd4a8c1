package main

//lint:file-ignore SA1019 what is mirrored is the old API

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

func init() {
	register(&scenario{
		name: "mirroring", order: 19, quick: 3 * time.Minute, full: 20 * time.Minute,
		about: "Services without a selector and Endpoints that somebody else writes: created at a steady rate, then one address of each changes, then the Endpoints are deleted. The time runs until the EndpointSlice says the same. Only service accounts are made besides.",
		sizes: []size{
			{"services", 1000, 100, "Services with custom Endpoints"},
			{"addresses", 100, 20, "addresses of each"},
			{"rate", 50, 50, "Endpoints a second"},
		},
		run: runMirroring,
	})
}

func runMirroring(ctx context.Context, w *world) error {
	w.watch(ctx)
	for i, arg := range w.args {
		if strings.HasPrefix(arg, "--controllers=") {
			w.args[i] = "--controllers=endpointslice-mirroring-controller,serviceaccount-controller"
		}
	}
	if err := w.start(ctx, "--leader-elect=false"); err != nil {
		return err
	}
	if err := w.newNamespace(ctx, namespace); err != nil {
		return err
	}
	services := w.load().CoreV1().Services(namespace)
	if err := parallel(ctx, workers, w.sizes["services"], func(i int) error {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: customName(i)}}
		service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		_, err := services.Create(ctx, service, metav1.CreateOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("create the Services: %w", err)
	}
	if err := pause(ctx, w.settling()); err != nil {
		return err
	}
	for _, phase := range []struct{ name, last string }{{"Endpoints are created", firstLast}, {"an address changes", secondLast}} {
		if err := w.mirror(ctx, phase.name, phase.last); err != nil {
			return err
		}
	}
	return w.unmirror(ctx)
}

const (
	// firstLast and secondLast are the last address of all Endpoints, before and after the change.
	firstLast  = "10.9.0.1"
	secondLast = "10.9.0.2"
)

func customName(i int) string { return fmt.Sprintf("custom-%d", i) }

// customEndpoints has as many addresses, of which the last one is given.
func customEndpoints(name, last string, addresses int) *corev1.Endpoints {
	subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Port: 80}}}
	for i := range addresses - 1 {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: fmt.Sprintf("10.8.%d.%d", i/250, 1+i%250)})
	}
	subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: last})
	return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: name}, Subsets: []corev1.EndpointSubset{subset}}
}

// mirror writes all Endpoints at the rate, and waits until a slice of each has the address.
func (w *world) mirror(ctx context.Context, what, last string) error {
	count := w.sizes["services"]
	served, err := w.expect(ctx, "slices say the same", count, w.watches.Discovery().V1().EndpointSlices().Informer(), func(object any) string {
		slice, ok := object.(*discoveryv1.EndpointSlice)
		if !ok || !slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return slices.Contains(e.Addresses, last) }) {
			return ""
		}
		return slice.Labels[discoveryv1.LabelServiceName]
	})
	if err != nil {
		return err
	}
	client := w.load().CoreV1().Endpoints(namespace)
	return w.step(ctx, report.Step{Name: what, Objects: count, Unit: "Service"}, func(ctx context.Context) ([]report.Latency, error) {
		err := paced(ctx, count, w.sizes["rate"], func(i int) error {
			wanted := customEndpoints(customName(i), last, w.sizes["addresses"])
			served.ask(wanted.Name)
			var err error
			if last == firstLast {
				_, err = client.Create(ctx, wanted, metav1.CreateOptions{})
			} else {
				_, err = client.Update(ctx, wanted, metav1.UpdateOptions{})
			}
			return err
		})
		took, waited := served.wait(ctx)
		return []report.Latency{report.Latencies("Endpoints to slice", took)}, errors.Join(err, waited)
	})
}

// unmirror deletes all Endpoints at the rate, and waits until their slices are gone.
func (w *world) unmirror(ctx context.Context) error {
	count := w.sizes["services"]
	gone, err := w.expectGone(ctx, "slices are gone", count, w.watches.Discovery().V1().EndpointSlices().Informer(), func(object any) string {
		if slice, ok := object.(*discoveryv1.EndpointSlice); ok && slice.Namespace == namespace {
			return slice.Labels[discoveryv1.LabelServiceName]
		}
		return ""
	})
	if err != nil {
		return err
	}
	client := w.load().CoreV1().Endpoints(namespace)
	return w.step(ctx, report.Step{Name: "Endpoints are deleted", Objects: count, Unit: "Service"}, func(ctx context.Context) ([]report.Latency, error) {
		err := paced(ctx, count, w.sizes["rate"], func(i int) error {
			gone.ask(customName(i))
			return client.Delete(ctx, customName(i), metav1.DeleteOptions{})
		})
		took, waited := gone.wait(ctx)
		return []report.Latency{report.Latencies("deleted to slice gone", took)}, errors.Join(err, waited)
	})
}
