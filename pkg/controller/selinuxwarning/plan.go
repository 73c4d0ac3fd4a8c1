package selinuxwarning

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// plan tells a pod, and the others on its volumes, what they disagree on. A conflict that
// was told before is not told again; that a pod has two labels for one volume is, as the
// original does.
func plan(o observed, _ time.Time) act.Plan {
	if o.pod == nil {
		return act.Plan{Why: "the pod is gone or has ended", Note: note(noted{})}
	}
	uses := slices.Clone(o.had) // the pod may have a volume still that its claim has lost
	var steps []act.Step
	waiting := ""
	known := o.known()
	for _, m := range o.mounts {
		if m.waits != "" {
			waiting += fmt.Sprintf("; volume %s: %s", m.name, m.waits)
			continue
		}
		if len(m.labels) > 1 {
			steps = append(steps, act.Event{On: o.pod, Type: corev1.EventTypeWarning, Reason: "MultipleSELinuxLabels",
				Message: fmt.Sprintf("Volume %q is mounted twice with different SELinux labels inside this pod", m.name)})
			continue
		}
		if m.id == "" {
			continue // no other pod has it, or it has one label always
		}
		u := use{m.source, wanted(o.pod, m.labels)}
		if before, is := known[u.id]; !is || before != u {
			steps = append(steps, tell(o.pod, u, m.rivals)...)
		}
		// A pod may mount one volume under two names, with two labels. Conflicts of both are
		// reported; the later label is noted.
		known[u.id] = u
		uses = append(slices.DeleteFunc(uses, func(before use) bool { return before.id == u.id }), u)
	}
	return act.Plan{
		Why:    fmt.Sprintf("it uses %d volumes that other pods can use: %d events%s", len(uses), len(steps), waiting),
		Stages: act.Stages(steps...), Note: note(noted{o.pod.UID, uses}),
	}
}

// known is how the pod used its volumes when it was last judged.
func (o observed) known() map[volumes.Name]use {
	known := map[volumes.Name]use{}
	if o.before.uid == o.pod.UID {
		for _, u := range o.before.uses {
			known[u.id] = u
		}
	}
	return known
}

func note(now noted) func(act.Results) any {
	return func(act.Results) any { return now }
}

// wanted is the label that the pod asks for; none when it wants its files labelled one
// by one.
func wanted(pod *corev1.Pod, labels []string) label {
	if len(labels) == 0 || recursive(pod) {
		return ""
	}
	return label(labels[0])
}

// tell gives both pods of each conflict on a volume an event. Pods that have not been judged since
// the driver has changed come after this one.
func tell(pod *corev1.Pod, u use, rivals []other) []act.Step {
	var steps []act.Step
	for _, r := range rivals {
		if !u.supported || !r.supported {
			continue
		}
		for _, c := range conflicts(u.label, r.label) {
			steps = append(steps, event(c, pod, r.pod), event(c.turned(), r.pod, pod))
		}
	}
	return steps
}

func event(c conflict, to, about *corev1.Pod) act.Step {
	reason, message := c.event(to, about)
	return act.Event{On: to, Type: corev1.EventTypeNormal, Reason: reason, Message: message}
}
