package bootstrapsigner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/bootstraptokens"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// observed is the config map and the secrets of tokens.
type observed struct {
	info    *corev1.ConfigMap
	secrets []*corev1.Secret
}

// plan makes the signatures in the config map those of the tokens. It updates the
// version that was looked at: the role has no patch. An immutable config map is called
// invalid, and only somebody else can change that.
func plan(o observed, now time.Time) act.Plan {
	content, ok := o.info.Data[api.KubeConfigKey]
	if !ok {
		return act.Plan{Why: "the config map has no kubeconfig"}
	}
	wanted := sign(content, o.secrets, now)
	signed := maps.Clone(o.info.Data)
	maps.DeleteFunc(signed, func(key, _ string) bool { return strings.HasPrefix(key, api.JWSSignatureKeyPrefix) })
	maps.Copy(signed, wanted.data)
	p := act.Plan{Why: wanted.String() + ": nothing differs", RequeueAfter: wanted.again}
	if !maps.Equal(signed, o.info.Data) {
		update := o.info.DeepCopy()
		update.Data = signed
		p.Why = wanted.String() + ": some signatures are missing, outdated, or of tokens that may not sign"
		p.Stages = act.Stages(act.Update{Object: update})
		p.TerminalIf = func(err error) bool { return ptr.Deref(o.info.Immutable, false) && apierrors.IsInvalid(err) }
	}
	return p
}

// signatures are what the tokens make of a content.
type signatures struct {
	data map[string]string
	// ignored are the secrets of tokens that do not sign, with the reason.
	ignored []string
	// again is when the first of the tokens ends; 0 if none does.
	again time.Duration
}

func sign(content string, secrets []*corev1.Secret, now time.Time) signatures {
	s := signatures{data: map[string]string{}}
	for _, secret := range secrets {
		token, err := bootstraptokens.ForSigning(secret, now)
		var signature string
		if err == nil {
			signature, err = jws.ComputeDetachedSignature(content, token.ID, token.Secret)
		}
		if err != nil {
			s.ignored = append(s.ignored, secret.Name+": "+err.Error())
			continue
		}
		s.data[api.JWSSignatureKeyPrefix+token.ID] = signature
		if left := token.Life.Left(now); left > 0 && (s.again == 0 || left < s.again) {
			s.again = left
		}
	}
	slices.Sort(s.ignored)
	return s
}

// String counts the tokens that sign, and names those that do not.
func (s signatures) String() string {
	words := fmt.Sprintf("%d tokens sign", len(s.data))
	if len(s.ignored) > 0 {
		words += fmt.Sprintf(", %d do not (%s)", len(s.ignored), strings.Join(s.ignored, "; "))
	}
	return words
}
