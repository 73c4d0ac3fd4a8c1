package serviceaccounttoken

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// observedAccount is a service account, and its token secrets if it is gone.
type observedAccount struct {
	key   accountKey
	there bool
	// another: another account has the name of the one that is gone.
	another bool
	secrets []*corev1.Secret
}

// observedSecret is a token secret, nil if it is gone, is another one or is no token any
// more, and its service account, nil if that is gone.
type observedSecret struct {
	key     secretKey
	secret  *corev1.Secret
	account *corev1.ServiceAccount
	rootCA  []byte
	// token is signed for a secret that lacks one.
	token string
	// taken: another secret has the name of the one that is gone. The account is nil when
	// it does not list that name.
	taken bool
}

// planAccount deletes the tokens of a service account that is gone. If another account has
// the name now, tokens without a UID are its. A second deletion of the version that was
// looked at is harmless.
func planAccount(o observedAccount, _ time.Time) act.Plan {
	if o.there {
		return act.Plan{Why: "the service account is there"}
	}
	gone := &corev1.ServiceAccount{}
	gone.Namespace, gone.Name, gone.UID = o.key.namespace, o.key.name, o.key.uid
	var steps []act.Step
	for _, secret := range o.secrets {
		if belongs(secret, gone) && secret.DeletionTimestamp == nil && !(o.another && secret.Annotations[corev1.ServiceAccountUIDKey] == "") {
			steps = append(steps, act.Delete{Of: secret, Unchanged: true, MayRepeat: true})
		}
	}
	if len(steps) == 0 {
		return act.Plan{Why: "the service account is gone, and so are its tokens"}
	}
	return act.Plan{
		Why:    fmt.Sprintf("the service account is gone: deleting its %d token secrets", len(steps)),
		Stages: []act.Stage{act.EachInTurn(steps...)},
	}
}

// planSecret fills a token secret, deletes it when its service account is gone,
// or takes a deleted one off its service account.
func planSecret(o observedSecret, _ time.Time) act.Plan {
	switch {
	case o.secret == nil:
		return unlisting(o)
	case o.account == nil && o.secret.DeletionTimestamp != nil:
		return act.Plan{Why: "its service account is gone, and it is being deleted"}
	case o.account == nil:
		return act.Plan{Why: "its service account is gone", Stages: act.Stages(act.Delete{Of: o.secret, Unchanged: true})}
	}
	missing := lacking(o.secret, o.rootCA)
	if missing == (lack{}) {
		return act.Plan{Why: "it is complete"}
	}
	return act.Plan{
		Why:    "it lacks " + missing.String(),
		Stages: act.Stages(act.Update{Object: filled(o.secret, o.account, missing, o.rootCA, o.token)}),
	}
}

// unlisting updates the account as it was looked at: the role of the process has no
// patch. After a conflict it is looked at again.
func unlisting(o observedSecret) act.Plan {
	switch {
	case o.account == nil:
		return act.Plan{Why: "the secret is gone and not listed"}
	case o.taken:
		return act.Plan{Why: "the secret is gone, and another one has taken the name"}
	}
	return act.Plan{
		Why:    "the secret is gone, and its service account lists it",
		Stages: act.Stages(act.Update{Object: without(o.account, o.key.name)}),
	}
}
