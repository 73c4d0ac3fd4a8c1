package statefulset

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// verb is what a step does to its pod.
type verb int

const (
	keep verb = iota // nothing, only the claims matter
	create
	remove
	repair
)

// step is what one pod needs. It is carried out in the order of its fields.
type step struct {
	verb verb
	// pod is the cached pod, or the one to create.
	pod *corev1.Pod
	// claims are made first.
	claims []*corev1.PersistentVolumeClaim
	// blocked are claims that are on their way out, which keep the rest from being done.
	blocked []*corev1.PersistentVolumeClaim
	// labels and volumes are what a repair adds to the pod.
	labels  map[string]string
	volumes []corev1.Volume
	// owners are the changed owner references of claims, disputed the names of those
	// that the retention policy asks for and somebody else controls.
	owners   []handover
	disputed []string
}

// handover gives a claim other owners.
type handover struct {
	claim *corev1.PersistentVolumeClaim
	refs  []metav1.OwnerReference
}

func (s step) idle() bool {
	return s.verb == keep && len(s.claims)+len(s.owners)+len(s.disputed)+len(s.blocked) == 0
}

// need is what the pod of a place needs, and what has to be waited for before
// the places after it get theirs.
func (o observed) need(at int, p place, ordered bool, now time.Time) (step, string) {
	pod := p.pod
	switch {
	case pod == nil:
		return o.missing(at, p.ordinal)
	case pods.Terminal(pod):
		// Whatever its exit codes: a pod that ended on a lost node may have succeeded.
		if terminating(pod) {
			return step{}, pod.Name + " has ended and is terminating"
		}
		if why := o.held.holds(pod, now); why != "" {
			return step{}, why
		}
		return step{verb: remove, pod: pod}, pod.Name + " has ended"
	}
	s := step{pod: pod}
	if pod.Status.Phase == corev1.PodPending {
		s.claims, s.blocked = o.missingClaims(p.ordinal)
		s.owners, s.disputed = o.handovers(pod)
	}
	if ordered {
		switch {
		case terminating(pod):
			return s, pod.Name + " is terminating"
		case !running(pod):
			return s, pod.Name + " is not ready"
		case !available(pod, o.set.Spec.MinReadySeconds, now):
			return s, pod.Name + " is not available"
		}
	}
	return o.repaired(s, p.ordinal), ""
}

// missing is how a place gets its pod.
func (o observed) missing(at, ordinal int) (step, string) {
	name := podName(o.set.Name, ordinal)
	for _, template := range claimTemplates(o.set) {
		claim := o.claims[claimName(o.set, template, ordinal)]
		if claim != nil && leftOver(claim, o.set, ordinal) {
			return step{}, fmt.Sprintf("claim %s is deleted with the former pod %s: waiting for that", claim.Name, name)
		}
	}
	s := step{verb: create, pod: newPod(o.set, o.wantedRevision(at), ordinal)}
	o.held.mark(s.pod)
	s.claims, s.blocked = o.missingClaims(ordinal)
	s.owners, s.disputed = o.handovers(s.pod)
	return s, name + " is missing"
}

// missingClaims are the claims to make for a pod. Those that are being deleted
// block it, and the others are made all the same.
func (o observed) missingClaims(ordinal int) (missing, blocked []*corev1.PersistentVolumeClaim) {
	for _, template := range claimTemplates(o.set) {
		switch claim := o.claims[claimName(o.set, template, ordinal)]; {
		case claim == nil:
			missing = append(missing, newClaim(o.set, template, ordinal))
		case claim.DeletionTimestamp != nil:
			blocked = append(blocked, claim)
		}
	}
	return missing, blocked
}

// handovers are the claims of a pod whose owner is not as the policy says, and the
// names of those that are somebody else's. A pod that is to be made is no owner yet.
func (o observed) handovers(pod *corev1.Pod) (changes []handover, disputed []string) {
	ordinal, ok := ordinalIn(o.set, pod)
	if !ok {
		return nil, nil
	}
	if pod.UID == "" {
		pod = nil
	}
	for _, template := range claimTemplates(o.set) {
		claim := o.claims[claimName(o.set, template, ordinal)]
		if claim == nil {
			continue
		}
		if refs, ok := owned(claim, o.set, pod); !ok {
			changes = append(changes, handover{claim, refs})
		}
		if dispute(claim, o.set, pod) {
			disputed = append(disputed, claim.Name)
		}
	}
	return changes, disputed
}

// settled adds to a step what gives the claims of its pod their owners. Claims that
// belong to others are announced only when the step writes something: without that
// each reconcile would announce them.
func (o observed) settled(s step) step {
	if s.owners, s.disputed = o.handovers(s.pod); len(s.owners) == 0 {
		s.disputed = nil
	}
	return s
}

// repaired adds to a step what gives the pod back its identity and its storage,
// and its claims their owners.
func (o observed) repaired(s step, ordinal int) step {
	s.labels = missingLabels(o.set, s.pod, ordinal)
	s.volumes = missingVolumes(o.set, s.pod, ordinal)
	pending := s.pod.Status.Phase == corev1.PodPending
	if !pending {
		s = o.settled(s)
		if len(s.volumes) > 0 {
			s.claims, s.blocked = o.missingClaims(ordinal)
		}
	}
	if len(s.labels)+len(s.volumes) > 0 || len(s.owners) > 0 && !pending {
		s.verb = repair
	}
	return s
}
