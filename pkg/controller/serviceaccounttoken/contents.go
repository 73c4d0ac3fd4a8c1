package serviceaccounttoken

import (
	"bytes"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// lack is what a token secret lacks.
type lack struct {
	RootCA, Namespace, Token bool
}

// String names what is lacking, and nothing of what is there.
func (l lack) String() string {
	var names []string
	for _, part := range []struct {
		lacking bool
		name    string
	}{{l.RootCA, "the root CA"}, {l.Namespace, "the namespace"}, {l.Token, "a token"}} {
		if part.lacking {
			names = append(names, part.name)
		}
	}
	return strings.Join(names, ", ")
}

// lacking compares the secret with what it must hold. A namespace and a token
// that are there stay, whatever they are; a root CA follows the configured one.
// The annotations alone are no reason to write.
func lacking(secret *corev1.Secret, rootCA []byte) lack {
	return lack{
		RootCA:    len(rootCA) > 0 && !bytes.Equal(secret.Data[corev1.ServiceAccountRootCAKey], rootCA),
		Namespace: len(secret.Data[corev1.ServiceAccountNamespaceKey]) == 0,
		Token:     len(secret.Data[corev1.ServiceAccountTokenKey]) == 0,
	}
}

// filled returns the secret with everything it lacks, and the annotations that
// tie it to its service account.
func filled(secret *corev1.Secret, account *corev1.ServiceAccount, missing lack, rootCA []byte, token string) *corev1.Secret {
	full := secret.DeepCopy()
	if full.Data == nil {
		full.Data = map[string][]byte{}
	}
	if missing.RootCA {
		full.Data[corev1.ServiceAccountRootCAKey] = rootCA
	}
	if missing.Namespace {
		full.Data[corev1.ServiceAccountNamespaceKey] = []byte(full.Namespace)
	}
	if missing.Token {
		full.Data[corev1.ServiceAccountTokenKey] = []byte(token)
	}
	metav1.SetMetaDataAnnotation(&full.ObjectMeta, corev1.ServiceAccountNameKey, account.Name)
	metav1.SetMetaDataAnnotation(&full.ObjectMeta, corev1.ServiceAccountUIDKey, string(account.UID))
	return full
}

// belongs reports whether a token secret is of this service account. One without
// the UID annotation belongs to whoever has the name.
func belongs(secret *corev1.Secret, account *corev1.ServiceAccount) bool {
	uid := types.UID(secret.Annotations[corev1.ServiceAccountUIDKey])
	return secret.Namespace == account.Namespace &&
		secret.Annotations[corev1.ServiceAccountNameKey] == account.Name &&
		(uid == "" || uid == account.UID)
}

// isToken reports whether a secret is a token of some service account.
func isToken(secret *corev1.Secret) bool {
	return secret.Type == corev1.SecretTypeServiceAccountToken && secret.Annotations[corev1.ServiceAccountNameKey] != ""
}

// refers reports whether the service account lists a secret of this name.
func refers(account *corev1.ServiceAccount, secretName string) bool {
	return slices.ContainsFunc(account.Secrets, func(r corev1.ObjectReference) bool { return r.Name == secretName })
}

// without returns the service account with the secret off its list.
func without(account *corev1.ServiceAccount, secretName string) *corev1.ServiceAccount {
	next := account.DeepCopy()
	next.Secrets = slices.DeleteFunc(next.Secrets, func(r corev1.ObjectReference) bool { return r.Name == secretName })
	return next
}
