package ephemeralvolume

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// failedBinding is the reason of all events.
const failedBinding = "FailedBinding"

// observed is a pod and the claims in the cache that have the names of its volumes.
type observed struct {
	pod    *corev1.Pod
	claims map[string]*corev1.PersistentVolumeClaim
}

// plan creates the claims that are missing, in the order of the volumes. One that
// cannot be created holds up no other.
func plan(o observed, _ time.Time) act.Plan {
	if o.pod.DeletionTimestamp != nil {
		return act.Plan{Why: "the pod is being deleted"}
	}
	var steps []act.Step
	var missing, foreign []string
	for _, v := range volumes(o.pod) {
		name := ephemeral.VolumeClaimName(o.pod, v)
		claim := o.claims[name]
		if claim == nil {
			steps, missing = append(steps, creation(o.pod, v)), append(missing, name)
			continue
		}
		if err := refusal(o.pod, v, claim); err != nil {
			steps, foreign = append(steps, tell(o.pod, err), act.WaitFor{Of: claim, Err: err}), append(foreign, name)
		}
	}
	if len(steps) == 0 {
		return act.Plan{Why: "all its claims are there"}
	}
	return act.Plan{
		Why:    fmt.Sprintf("claims that are missing: %q, that others have: %q", missing, foreign),
		Stages: []act.Stage{act.EachInTurn(steps...)}, Counts: counts, Else: taken(o.pod),
	}
}

// volumes returns the generic ephemeral volumes of a pod.
func volumes(pod *corev1.Pod) []*corev1.Volume {
	var all []*corev1.Volume
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			all = append(all, v)
		}
	}
	return all
}

// creation makes the claim of a volume. One of the pod that the cache does not show yet
// is as good.
func creation(pod *corev1.Pod, v *corev1.Volume) act.Step {
	template := v.Ephemeral.VolumeClaimTemplate.DeepCopy()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: ephemeral.VolumeClaimName(pod, v), Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
		},
		Spec: template.Spec,
	}
	return act.Create{
		Object: claim, MayExist: true, EndingFails: true,
		Same:   func(live client.Object) bool { return metav1.IsControlledBy(live, pod) },
		Events: act.Events{On: pod, FailedReason: failedBinding, Failed: fmt.Sprintf("ephemeral volume %s: create PVC %s: %%v", v.Name, claim.Name)},
	}
}

// refusal returns why a claim is not that of the volume; nil if it is.
func refusal(pod *corev1.Pod, v *corev1.Volume, claim *corev1.PersistentVolumeClaim) error {
	if err := ephemeral.VolumeIsForPod(pod, claim); err != nil {
		return fmt.Errorf("ephemeral volume %s: %w", v.Name, err)
	}
	return nil
}

func tell(pod *corev1.Pod, why error) act.Step {
	return act.Event{On: pod, Type: corev1.EventTypeWarning, Reason: failedBinding, Message: why.Error()}
}

// taken gives the events for names that other claims have.
func taken(pod *corev1.Pod) func(act.Results) act.Plan {
	return func(results act.Results) act.Plan {
		var steps []act.Step
		var errs []error
		for _, r := range results {
			claim, is := r.Object.(*corev1.PersistentVolumeClaim)
			if r.Became != act.Taken || !is {
				continue
			}
			for _, v := range volumes(pod) {
				if ephemeral.VolumeClaimName(pod, v) != claim.Name {
					continue
				}
				if foreign := refusal(pod, v, claim); foreign != nil {
					steps, errs = append(steps, tell(pod, foreign)), append(errs, foreign)
				}
			}
		}
		return act.Plan{
			Why:    fmt.Sprintf("not all claims could be created, %d since others have their names", len(errs)),
			Stages: act.Stages(steps...), Err: errors.Join(errs...),
		}
	}
}

// counts counts the requests to create and those that failed.
func counts(results act.Results) []act.Count {
	var counted []act.Count
	for _, r := range results {
		if _, is := r.Step.(act.Create); !is || r.Became == act.NotBegun || r.Became == act.OnHold {
			continue
		}
		counted = append(counted, act.Count{Adds: creates, Value: 1})
		if r.Became != act.Done && r.Became != act.Existed {
			counted = append(counted, act.Count{Adds: createFailures, Value: 1})
		}
	}
	return counted
}
