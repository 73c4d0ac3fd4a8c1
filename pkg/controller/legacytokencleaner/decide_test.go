package legacytokencleaner

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// tokenOf is a generated token of account builder, older than a year; with labels
// of the days of its last use and of its mark, if given.
func tokenOf(lastUsed, invalidSince string) *metav1.PartialObjectMetadata {
	labels := map[string]string{}
	if lastUsed != "" {
		labels[LastUsedLabel] = lastUsed
	}
	if invalidSince != "" {
		labels[InvalidSinceLabel] = invalidSince
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "builder-token", Namespace: "team", UID: "s-1", ResourceVersion: "5", Labels: labels,
			CreationTimestamp: metav1.NewTime(noon.Add(-2 * year)),
			Annotations:       map[string]string{corev1.ServiceAccountNameKey: "builder", corev1.ServiceAccountUIDKey: "a-1"},
		},
	}
}

func with(secret *metav1.PartialObjectMetadata, change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	change(secret)
	return secret
}

// account is service account builder, which lists these secrets.
func account(lists ...string) *corev1.ServiceAccount {
	a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "builder", Namespace: "team", UID: "a-1"}}
	for _, name := range lists {
		a.Secrets = append(a.Secrets, corev1.ObjectReference{Name: name})
	}
	return a
}

func TestJudge(t *testing.T) {
	lists := account("other", "builder-token")
	former := account("builder-token")
	former.UID = "a-2"
	for name, tc := range map[string]struct {
		secret  *metav1.PartialObjectMetadata
		account *corev1.ServiceAccount
		want    action
		why     string
	}{
		"an old token that was never used is marked":     {tokenOf("", ""), lists, mark, "not used"},
		"one last used more than a year ago is marked":   {tokenOf("2025-05-31", ""), lists, mark, "not used"},
		"one used a year ago to the day stays":           {tokenOf("2025-06-01", ""), lists, keep, "was used"},
		"one used lately stays":                          {tokenOf("2026-05-31", ""), lists, keep, "was used"},
		"one used in the future stays":                   {tokenOf("2999-01-01", ""), lists, keep, "was used"},
		"a last use that cannot be read keeps it":        {tokenOf("06/01/2020", ""), lists, keep, "cannot be read"},
		"so does an empty one":                           {with(tokenOf("x", ""), func(s *metav1.PartialObjectMetadata) { s.Labels[LastUsedLabel] = "" }), lists, keep, "cannot be read"},
		"one marked today stays":                         {tokenOf("", "2026-06-01"), lists, keep, "not been invalid"},
		"one marked a year ago to the day stays":         {tokenOf("", "2025-06-01"), lists, keep, "not been invalid"},
		"one marked the day before goes":                 {tokenOf("", "2025-05-31"), lists, remove, "invalid"},
		"one marked in the future stays":                 {tokenOf("", "2999-01-01"), lists, keep, "not been invalid"},
		"a mark that cannot be read is put right":        {tokenOf("", "yesterday"), lists, mark, "not used"},
		"an empty mark is put right":                     {with(tokenOf("", "x"), func(s *metav1.PartialObjectMetadata) { s.Labels[InvalidSinceLabel] = "" }), lists, mark, "not used"},
		"a marked one that was used lately stays marked": {tokenOf("2026-05-31", "2024-01-01"), lists, keep, "was used"},
		"a token younger than a year stays": {with(tokenOf("", ""), func(s *metav1.PartialObjectMetadata) {
			s.CreationTimestamp = metav1.NewTime(noon.Add(-year).Add(time.Second))
		}), lists, keep, "younger"},
		"one of exactly a year stays too": {with(tokenOf("", ""), func(s *metav1.PartialObjectMetadata) {
			s.CreationTimestamp = metav1.NewTime(noon.Add(-year))
		}), lists, keep, "younger"},
		"a token that is being deleted is left alone": {with(tokenOf("", "2024-01-01"), func(s *metav1.PartialObjectMetadata) {
			s.DeletionTimestamp = &metav1.Time{Time: noon}
		}), lists, keep, "being deleted"},
		"a token that no account lists was made by hand": {tokenOf("", "2024-01-01"), account("other"), keep, "by hand"},
		"a token of an account that is gone is kept":     {tokenOf("", "2024-01-01"), nil, keep, "gone"},
		"a token of a former account is kept":            {tokenOf("", "2024-01-01"), former, keep, "former"},
		"a token without the UID belongs to who has the name": {with(tokenOf("", ""), func(s *metav1.PartialObjectMetadata) {
			delete(s.Annotations, corev1.ServiceAccountUIDKey)
		}), former, mark, "not used"},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.secret, tc.account, year, noon)
			if got.Do != tc.want || !strings.Contains(got.Why, tc.why) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestDaysAreThoseOfUTC(t *testing.T) {
	// In the evening of May 31 in the west it is June 1 already.
	evening := time.Date(2026, 5, 31, 20, 0, 0, 0, time.FixedZone("west", -8*3600))
	if got := decide(tokenOf("2025-05-31", ""), account("builder-token"), year, evening); got.Do != mark {
		t.Errorf("got %v", got)
	}
}

func TestTrackedFrom(t *testing.T) {
	for name, tc := range map[string]struct {
		data map[string]string
		want time.Time
		says string
	}{
		"the first day does not count": {map[string]string{"since": "2026-02-28"}, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), ""},
		"no date":                      {nil, time.Time{}, `no "since"`},
		"a date that cannot be read":   {map[string]string{"since": "today"}, time.Time{}, "cannot parse"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := trackedFrom(trackedSince(tc.data))
			if !got.Equal(tc.want) || (err != nil) != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func trackedSince(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: TrackingConfigMap, Namespace: "kube-system"}, Data: data}
}
