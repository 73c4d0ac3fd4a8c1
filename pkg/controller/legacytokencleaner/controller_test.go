package legacytokencleaner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// world is a controller, the API servers that it writes to and lists from, and its clock.
type world struct {
	*Controller
	client, reader *fake.Clientset
	clock          *testclock.FakeClock
}

// newWorld has the account live and in the cache, which learns nothing more; uses recorded since a date, and these tokens and pods.
func newWorld(t *testing.T, account *corev1.ServiceAccount, since string, objects ...runtime.Object) world {
	t.Helper()
	var held, read []runtime.Object
	for _, object := range objects {
		if secret, ok := object.(*metav1.PartialObjectMetadata); ok {
			object = &corev1.Secret{ObjectMeta: *secret.ObjectMeta.DeepCopy(), Type: corev1.SecretTypeServiceAccountToken}
			held = append(held, object.DeepCopyObject())
		}
		read = append(read, object)
	}
	if since != "" {
		held = append(held, trackedSince(map[string]string{"since": since}))
	}
	rig := fixture.New(fake.NewClientset(held...), noon)
	w := world{client: rig.Client, reader: fake.NewClientset(append(read, account)...), clock: rig.Clock}
	factory := informers.NewSharedInformerFactory(w.reader, 0)
	accounts := factory.Core().V1().ServiceAccounts()
	var err error
	w.Controller, err = New(accounts, fixture.Client(w.reader), rig.Hand(), Options{CleanUpPeriod: year})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	stop()
	factory.Shutdown()
	w.reader.ClearActions()
	return w
}

// verbs are the requests that clients have sent.
func verbs(clients ...interface{ Actions() []clienttesting.Action }) []string {
	sent := []string{}
	for _, client := range clients {
		for _, action := range client.Actions() {
			if action.GetVerb() != "watch" {
				sent = append(sent, strings.Join([]string{action.GetVerb(), action.GetResource().Resource, action.GetNamespace()}, " "))
			}
		}
	}
	return sent
}

var team = key{"team"}

func podWith(secret string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "team"}, Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}}}}
}

func TestFind(t *testing.T) {
	for name, tc := range map[string]struct {
		since  string
		secret *metav1.PartialObjectMetadata
		want   []string
		listed bool
		fail   bool
	}{
		"a namespace with an unused token is found":             {"2020-01-01", tokenOf("", ""), []string{"team"}, true, false},
		"one whose tokens are used is not":                      {"2020-01-01", tokenOf("2026-05-31", ""), []string{}, true, false},
		"a year of recording ends with the day after the first": {"2025-05-31", tokenOf("", ""), []string{"team"}, true, false},
		"and not before: nothing is even listed":                {"2025-06-01", tokenOf("", ""), nil, false, false},
		"without the config map nothing is judged":              {"", tokenOf("", ""), nil, false, true},
		"with a date that cannot be read nothing is judged":     {"soon", tokenOf("", ""), nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, account("builder-token"), tc.since, tc.secret)
			o, err := w.observe(t.Context(), pass)
			if diff := cmp.Diff(tc.want, o.namespaces); diff != "" || (err != nil) != tc.fail {
				t.Errorf("%v, %s", err, diff)
			}
			if got := verbs(w.reader); slices.Equal(got, []string{"list secrets "}) != tc.listed || !tc.listed && len(got) > 0 {
				t.Errorf("listed %v", got)
			}
			if got := verbs(w.client); !slices.Equal(got, []string{"get configmaps kube-system"}) {
				t.Errorf("sent %v", got)
			}
			woken := w.Len()
			switch r := w.Reconcile(t.Context(), pass); {
			case (r.Err() != nil) != tc.fail || !tc.fail && r.After() != 24*time.Hour:
				t.Errorf("got %v, again after %s", r.Err(), r.After())
			case w.Len() != woken+len(tc.want):
				t.Errorf("woke %d namespaces", w.Len()-woken)
			}
		})
	}
}

func TestRetire(t *testing.T) {
	unlisted := account("builder-token")
	for name, tc := range map[string]struct {
		secret *metav1.PartialObjectMetadata
		pods   []runtime.Object
		live   func(*fake.Clientset) error
		reads  []string
		writes []string
	}{
		"a used token costs one list":     {tokenOf("2026-05-31", ""), nil, nil, []string{"list secrets team"}, []string{}},
		"an unused token is marked":       {tokenOf("", ""), nil, nil, []string{"list secrets team", "list pods team", "get serviceaccounts team"}, []string{"patch secrets team"}},
		"a token long invalid is deleted": {tokenOf("", "2024-01-01"), nil, nil, []string{"list secrets team", "list pods team", "get serviceaccounts team"}, []string{"delete secrets team"}},
		"a token in use stays":            {tokenOf("", "2024-01-01"), []runtime.Object{podWith("builder-token")}, nil, []string{"list secrets team", "list pods team"}, []string{}},
		"a pod with another one is none":  {tokenOf("", ""), []runtime.Object{podWith("other")}, nil, []string{"list secrets team", "list pods team", "get serviceaccounts team"}, []string{"patch secrets team"}},
		"a token unlisted since stays, whatever the cache says": {tokenOf("", "2024-01-01"), nil, func(c *fake.Clientset) error {
			unlisted.Secrets = nil
			return c.Tracker().Update(corev1.SchemeGroupVersion.WithResource("serviceaccounts"), unlisted, "team")
		}, []string{"list secrets team", "list pods team", "get serviceaccounts team"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, account("builder-token"), "2020-01-01", append(tc.pods, tc.secret)...)
			if tc.live != nil {
				if err := tc.live(w.reader); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Reconcile(t.Context(), team).Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.reads, verbs(w.reader)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.writes, verbs(w.client)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWritesNameWhatWasJudged(t *testing.T) {
	w := newWorld(t, account("builder-token"), "2020-01-01", tokenOf("2024-01-01", ""))
	if err := w.Reconcile(t.Context(), team).Err(); err != nil {
		t.Fatal(err)
	}
	patch, ok := w.client.Actions()[0].(clienttesting.PatchAction)
	// With a kind and a name, and no apply for all that: managedFields have it as an update.
	const want = `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"builder-token","namespace":"team","uid":"s-1","resourceVersion":"5","labels":{"kubernetes.io/legacy-token-invalid-since":"2026-06-01"}}}`
	if !ok || string(patch.GetPatch()) != want || patch.GetPatchType() != types.MergePatchType {
		t.Errorf("sent %v", w.client.Actions()[0])
	}
	w = newWorld(t, account("builder-token"), "2020-01-01", tokenOf("", "2024-01-01"))
	if err := w.Reconcile(t.Context(), team).Err(); err != nil {
		t.Fatal(err)
	}
	deletion, ok := w.client.Actions()[0].(clienttesting.DeleteActionImpl)
	if !ok || *deletion.DeleteOptions.Preconditions.UID != "s-1" || *deletion.DeleteOptions.Preconditions.ResourceVersion != "5" {
		t.Errorf("sent %v", w.client.Actions()[0])
	}
}

func TestOnlyTokensAreListed(t *testing.T) {
	w := newWorld(t, account("builder-token"), "2020-01-01", tokenOf("", ""))
	if err := w.Reconcile(t.Context(), pass).Err(); err != nil {
		t.Fatal(err)
	}
	list := w.reader.Actions()[0].(clienttesting.ListAction)
	if got := list.GetListRestrictions().Fields.String(); got != "type=kubernetes.io/service-account-token" {
		t.Errorf("listed secrets with fields %q", got)
	}
}

func TestFaults(t *testing.T) {
	resource := corev1.Resource("secrets")
	for name, tc := range map[string]struct {
		verb, on string
		refusal  error
		fail     bool
	}{
		"a token changed since is judged again":   {"delete", "secrets", apierrors.NewConflict(resource, "x", errors.New("changed")), true},
		"a token that is gone is fine":            {"delete", "secrets", apierrors.NewNotFound(resource, "x"), false},
		"a refusal is retried":                    {"delete", "secrets", apierrors.NewForbidden(resource, "x", errors.New("policy")), true},
		"unknown pods: nothing is deleted":        {"list", "pods", errors.New("timeout"), true},
		"an unknown account: nothing is deleted":  {"get", "serviceaccounts", errors.New("timeout"), true},
		"an account that is gone: nothing either": {"get", "serviceaccounts", apierrors.NewNotFound(corev1.Resource("serviceaccounts"), "builder"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, account("builder-token"), "2020-01-01", tokenOf("", "2024-01-01"))
			for _, client := range []*fake.Clientset{w.client, w.reader} {
				client.PrependReactor(tc.verb, tc.on, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.refusal })
			}
			if err := w.Reconcile(t.Context(), team).Err(); (err != nil) != tc.fail {
				t.Errorf("got %v", err)
			}
			if tc.on != "secrets" && len(w.client.Actions()) > 0 {
				t.Errorf("wrote %v", verbs(w.client))
			}
		})
	}
}

func TestOnceADay(t *testing.T) {
	w := newWorld(t, account("builder-token"), "2025-06-01", tokenOf("", ""))
	fixture.Run(t, w.reader, w.Run)
	looks := func() int {
		return len(slices.DeleteFunc(verbs(w.client), func(v string) bool { return v != "get configmaps kube-system" }))
	}
	fixture.Eventually(t, "the first look", func() bool { return looks() == 1 })
	if got := verbs(w.client); len(got) != 1 {
		t.Errorf("sent %v on the day before", got)
	}
	fixture.Eventually(t, "the mark", func() bool {
		w.clock.Step(time.Hour)
		return slices.Contains(verbs(w.client), "patch secrets team")
	})
	if got := w.clock.Since(noon); got < 24*time.Hour || looks() < 2 {
		t.Errorf("marked after %s and %d looks", got, looks())
	}
}
