package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

func init() {
	register(&scenario{
		name: "largeobjects", order: 11, quick: 5 * time.Minute, full: 20 * time.Minute,
		about: "Large ConfigMaps that no controller has a use for are created while the process runs, and stay. What grows is what it keeps of each.",
		sizes: []size{
			{"count", 5000, 200, "ConfigMaps of largeobjects"},
			{"kib", 200, 200, "KiB in each ConfigMap of largeobjects"},
		},
		run: runLargeObjects,
	})
}

func runLargeObjects(ctx context.Context, w *world) error {
	if err := w.begin(ctx, 1); err != nil {
		return err
	}
	if err := pause(ctx, w.settling()); err != nil {
		return err
	}
	before, err := usage(w.measured())
	if err != nil {
		return err
	}
	count, data := w.sizes["count"], strings.Repeat("0123456789abcdef", w.sizes["kib"]<<6)
	client := w.load()
	err = w.step(ctx, report.Step{Name: "create ConfigMaps", Objects: count, Unit: "ConfigMap"}, func(ctx context.Context) ([]report.Latency, error) {
		return nil, parallel(ctx, workers, count, func(i int) error {
			_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("large-%d", i)}, Data: map[string]string{"data": data}}, metav1.CreateOptions{})
			return err
		})
	})
	if err != nil {
		return err
	}
	if err := pause(ctx, w.settling()); err != nil {
		return err
	}
	after, err := usage(w.measured())
	if err != nil {
		return err
	}
	added := report.Figure{Name: "resident memory added", Unit: "MiB", Value: float64(after.ResidentKiB-before.ResidentKiB) / 1024}
	last := &w.result.Steps[len(w.result.Steps)-1]
	last.Figures = append(last.Figures, added)
	return nil
}
