package recycle

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

// hearAgain is how long to wait before events are watched again.
const hearAgain = time.Second

// Events watches the events about the objects of a name, from those that there are.
type Events func(ctx context.Context, namespace, name string) (watch.Interface, error)

// Of reports whether an event is about a recycler pod. One that names no UID is about the
// pod of that name.
func Of(pod *corev1.Pod, event *corev1.Event) bool {
	about := event.InvolvedObject
	return about.Namespace == pod.Namespace && about.Name == pod.Name && (about.UID == "" || about.UID == pod.UID)
}

// retell says what new events say of a pod, each once, until ctx ends. Without them a
// volume is recycled all the same.
func (p *Pods) retell(ctx context.Context, pod *corev1.Pod, say func(kind, message string)) {
	told := map[types.UID]bool{}
	for ctx.Err() == nil {
		events, err := p.events(ctx, pod.Namespace, pod.Name)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Cannot watch the events of a recycler pod; trying again", "pod", klog.KObj(pod), "err", err)
		} else {
			hear(ctx, events, func(event *corev1.Event) {
				if !told[event.UID] && Of(pod, event) {
					told[event.UID] = true
					say(event.Type, "Recycler pod: "+event.Message)
				}
			})
		}
		timer := p.clock.NewTimer(hearAgain)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}

// hear passes new events on until the watch or ctx ends.
func hear(ctx context.Context, events watch.Interface, pass func(*corev1.Event)) {
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case change, more := <-events.ResultChan():
			if !more {
				return
			}
			if event, is := change.Object.(*corev1.Event); is && change.Type == watch.Added {
				pass(event)
			}
		}
	}
}
