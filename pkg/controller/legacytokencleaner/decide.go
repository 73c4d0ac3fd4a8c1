package legacytokencleaner

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// LastUsedLabel is the day on which the API server last saw a token.
	LastUsedLabel = "kubernetes.io/legacy-token-last-used"
	// InvalidSinceLabel is the day on which a token became invalid. The API
	// server refuses a token that has it.
	InvalidSinceLabel = "kubernetes.io/legacy-token-invalid-since"
	// TrackingConfigMap is where the API server says since which day it records
	// the use of tokens. It is in kube-system.
	TrackingConfigMap = "kube-apiserver-legacy-service-account-token-tracking"

	sinceKey = "since"
)

// action is what becomes of a token.
type action string

const (
	keep   action = "keep"
	mark   action = "mark"
	remove action = "delete"
)

// decision is the action and its reason.
type decision struct {
	Do  action
	Why string
}

// trackedFrom returns the moment from which on every use is recorded: the end
// of the day on which the recording began.
func trackedFrom(tracking *corev1.ConfigMap) (time.Time, error) {
	since, ok := tracking.Data[sinceKey]
	if !ok {
		return time.Time{}, fmt.Errorf("config map %s/%s has no %q", tracking.Namespace, tracking.Name, sinceKey)
	}
	day, err := time.Parse(time.DateOnly, since)
	if err != nil {
		return time.Time{}, fmt.Errorf("read %q of config map %s/%s: %w", sinceKey, tracking.Namespace, tracking.Name, err)
	}
	return day.AddDate(0, 0, 1), nil
}

// decide says what becomes of a token secret, as far as no pod refers to it.
// Account is the service account that it names, nil if there is none; period is
// the clean-up period. Days are those of UTC.
func decide(secret metav1.Object, account *corev1.ServiceAccount, period time.Duration, now time.Time) decision {
	now = now.UTC()
	since := now.Add(-period)
	switch {
	case !secret.GetCreationTimestamp().Time.Before(since):
		return decision{keep, "it is younger than the clean-up period"}
	case secret.GetDeletionTimestamp() != nil:
		return decision{keep, "it is being deleted"}
	}
	if used, ok := secret.GetLabels()[LastUsedLabel]; ok {
		day, err := time.Parse(time.DateOnly, used)
		if err != nil {
			return decision{keep, fmt.Sprintf("its last use %q cannot be read", used)}
		}
		if !day.Before(dayOf(since)) {
			return decision{keep, "it was used within the clean-up period"}
		}
	}
	if why := notGenerated(secret, account); why != "" {
		return decision{keep, why}
	}
	invalid, err := time.Parse(time.DateOnly, secret.GetLabels()[InvalidSinceLabel])
	switch {
	case err != nil: // no label, or one that says nothing
		return decision{mark, "it is not used"}
	case !invalid.Before(dayOf(since)):
		return decision{keep, "it has not been invalid for the clean-up period"}
	}
	return decision{remove, "it is not used and invalid"}
}

// notGenerated says why a secret is not a generated token of the account.
func notGenerated(secret metav1.Object, account *corev1.ServiceAccount) string {
	uid := types.UID(secret.GetAnnotations()[corev1.ServiceAccountUIDKey])
	switch {
	case account == nil:
		return "its service account is gone"
	case uid != "" && uid != account.UID:
		return "it belongs to a former service account of the name"
	case !slices.ContainsFunc(account.Secrets, func(r corev1.ObjectReference) bool { return r.Name == secret.GetName() }):
		return "its service account does not list it, so it was created by hand"
	}
	return ""
}

// dayOf is the beginning of the day of a time in UTC.
func dayOf(t time.Time) time.Time { return t.Truncate(24 * time.Hour) }
