package legacytokencleaner

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// observed is what a key is planned from: the pass from the first fields, a
// namespace from its tokens.
type observed struct {
	// unused is the clean-up period.
	unused time.Duration

	pass bool
	// due is when uses are recorded for a whole clean-up period.
	due time.Time
	// namespaces have tokens that may be to retire.
	namespaces []string

	tokens []token
}

// token is the metadata of a secret that may be to retire.
type token struct {
	secret *corev1.Secret
	// inUse: a pod refers to it.
	inUse bool
	// account is the service account that it names, as it is now, nil if there is none;
	// unknown is why that is not known.
	account *corev1.ServiceAccount
	unknown error
}

type (
	// found are the namespaces that the pass has found.
	found []string
	// retired are the secrets that were marked or deleted, as they were before.
	retired []retiredToken

	retiredToken struct {
		action action
		secret *corev1.Secret
	}
)

func plan(o observed, now time.Time) act.Plan {
	switch {
	case !o.pass:
		return retirement(o, now)
	case now.Before(o.due):
		return act.Plan{Why: "the use of tokens is not recorded for long enough; next check not before " + o.due.Format(time.RFC3339), RequeueAfter: period}
	}
	return act.Plan{
		Why:          fmt.Sprintf("%d namespaces have generated tokens that are unused for the clean-up period", len(o.namespaces)),
		Note:         func(act.Results) any { return found(o.namespaces) },
		RequeueAfter: period,
	}
}

// retirement marks or deletes the tokens that no pod refers to, each in the version
// that was judged: it may have been used since.
func retirement(o observed, now time.Time) act.Plan {
	var steps []act.Step
	marked, deleted := 0, 0
	for _, t := range o.tokens {
		if t.inUse {
			continue
		}
		if t.unknown != nil {
			steps = append(steps, act.WaitFor{Of: t.secret, Err: t.unknown})
			continue
		}
		switch decide(t.secret, t.account, o.unused, now).Do {
		case mark:
			marked++
			steps = append(steps, markInvalid(t.secret, now))
		case remove:
			deleted++
			steps = append(steps, act.Delete{Of: t.secret, Unchanged: true, MayRepeat: true})
		}
	}
	if len(o.tokens) == 0 {
		return act.Plan{Why: "there is nothing to retire"}
	}
	p := act.Plan{
		Why: fmt.Sprintf("%d generated tokens are unused for the clean-up period: marking %d, deleting %d, keeping %d",
			len(o.tokens), marked, deleted, len(o.tokens)-marked-deleted),
		Note: func(r act.Results) any { return retiredBy(r) },
	}
	if len(steps) > 0 {
		p.Stages = []act.Stage{act.EachInTurn(steps...)}
	}
	return p
}

func retiredBy(results act.Results) retired {
	var all retired
	for _, r := range results {
		if r.Became != act.Done {
			continue
		}
		switch step := r.Step.(type) {
		case act.Patch:
			all = append(all, retiredToken{mark, step.Of.(*corev1.Secret)})
		case act.Delete:
			all = append(all, retiredToken{remove, step.Of.(*corev1.Secret)})
		}
	}
	return all
}

// markInvalid sends a merge patch that names the secret in full, as the original
// does, so that managedFields show an update.
func markInvalid(secret *corev1.Secret, now time.Time) act.Step {
	patch := act.Body(applycorev1.Secret(secret.Name, secret.Namespace).
		WithUID(secret.UID).WithResourceVersion(secret.ResourceVersion).
		WithLabels(map[string]string{InvalidSinceLabel: now.UTC().Format(time.DateOnly)}))
	return act.Patch{Of: secret, Type: types.MergePatchType, Data: patch, Versioned: true}
}
