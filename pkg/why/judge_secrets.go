package why

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tokenInvalidSince is the label of a token that nobody has used for long.
const tokenInvalidSince = "kubernetes.io/legacy-token-invalid-since"

// judgeSecretHere is about token Secrets. Their caches hold them whole; the one of all
// Secrets holds names and finalizers.
func judgeSecretHere(l *look, object any, _ []Controller) (finding, bool) {
	o, ok := object.(metav1.Object)
	if !ok || o.GetDeletionTimestamp() != nil {
		return finding{}, false
	}
	kind, _ := l.kinds.of(secrets)
	for _, cache := range l.Caches(kind) {
		found, _, err := cache.Indexer.GetByKey(o.GetNamespace() + "/" + o.GetName())
		if secret, is := found.(*corev1.Secret); err == nil && is && secret.Type == corev1.SecretTypeServiceAccountToken {
			return judgeToken(secret), true
		}
	}
	return finding{}, false
}

// judgeToken reads the metadata of a token Secret, and never its content.
func judgeToken(secret *corev1.Secret) finding {
	f := finding{facts: []string{"type " + string(secret.Type)}}
	account := "service account " + secret.Annotations[corev1.ServiceAccountNameKey]
	since := secret.Labels[tokenInvalidSince]
	switch {
	case since != "":
		return f.with(Waiting, "its token is invalid since "+since+", because nobody has used it, and it is to be deleted")
	case secret.Annotations[corev1.ServiceAccountUIDKey] == "":
		return f.with(Waiting, "it waits to be given a token of "+account)
	}
	return f.with(Complete, "it is for a token of "+account)
}
