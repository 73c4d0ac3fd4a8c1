package bootstrapsigner

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"

	"github.com/kube-kcm/kube-controller-manager/pkg/bootstraptokens"
)

// plan says which signatures there must be.
type plan struct {
	// update is the config map to write, nil if nothing differs.
	update *corev1.ConfigMap
	// Signed are the IDs of the tokens that sign.
	Signed []string `json:"signed,omitempty"`
	// Ignored are the secrets of tokens that do not, with the reason.
	Ignored map[string]string `json:"ignored,omitempty"`
	// Malformed are those of them that were never in order.
	Malformed []string      `json:"malformed,omitempty"`
	Again     time.Duration `json:"again,omitempty"`
	Why       string        `json:"why"`
}

// decide compares the signatures in the config map, nil if there is none, with
// those that the tokens make.
func decide(info *corev1.ConfigMap, secrets []*corev1.Secret, now time.Time) plan {
	if info == nil {
		return plan{Why: "the config map is not there"}
	}
	content, ok := info.Data[api.KubeConfigKey]
	if !ok {
		return plan{Why: "the config map has no kubeconfig"}
	}
	do := plan{Why: "nothing differs"}
	signed := maps.Clone(info.Data)
	maps.DeleteFunc(signed, func(key, _ string) bool { return strings.HasPrefix(key, api.JWSSignatureKeyPrefix) })
	for _, secret := range secrets {
		token, err := bootstraptokens.ForSigning(secret, now)
		if err != nil {
			do.ignore(secret, err)
			continue
		}
		signature, err := jws.ComputeDetachedSignature(content, token.ID, token.Secret)
		if err != nil {
			do.ignore(secret, err)
			continue
		}
		signed[api.JWSSignatureKeyPrefix+token.ID] = signature
		do.Signed = append(do.Signed, token.ID)
		if left := token.Life.Left(now); left > 0 && (do.Again == 0 || left < do.Again) {
			do.Again = left
		}
	}
	slices.Sort(do.Signed)
	slices.Sort(do.Malformed)
	if !maps.Equal(signed, info.Data) {
		do.update = info.DeepCopy()
		do.update.Data = signed
		do.Why = "signatures are missing, outdated or of tokens that do not sign"
	}
	return do
}

func (p *plan) ignore(secret *corev1.Secret, why error) {
	if p.Ignored == nil {
		p.Ignored = map[string]string{}
	}
	p.Ignored[secret.Name] = why.Error()
	if errors.Is(why, bootstraptokens.ErrMalformed) {
		p.Malformed = append(p.Malformed, secret.Name)
	}
}
