package serviceaccounttoken

import (
	"encoding/base64"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// world is a controller whose caches hold cached and whose server holds live.
func world(t *testing.T, cached, live []runtime.Object) (*Controller, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(live...)
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Core().V1().ServiceAccounts(), shared.Core().V1().Secrets(), fixture.Hand(client, nil), Options{Key: rsaKey, RootCA: ca})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range cached {
		switch o := object.(type) {
		case *corev1.ServiceAccount:
			_ = shared.Core().V1().ServiceAccounts().Informer().GetStore().Add(o)
		case *corev1.Secret:
			_ = shared.Core().V1().Secrets().Informer().GetStore().Add(o)
		}
	}
	return c, client
}

func did(client *fake.Clientset) []string {
	var verbs []string
	for _, action := range client.Actions() {
		verbs = append(verbs, action.GetVerb()+" "+action.GetResource().Resource)
	}
	return verbs
}

// listing is account builder that lists the secret and another one.
func listing() *corev1.ServiceAccount {
	a := account("builder", "1")
	a.Secrets = []corev1.ObjectReference{{Name: "builder-token"}, {Name: "other"}}
	return a
}

func objects(o ...runtime.Object) []runtime.Object { return o }

func TestSyncSecret(t *testing.T) {
	renewed := listing()
	renewed.UID = "uid-2"
	for name, tc := range map[string]struct {
		cached, live []runtime.Object
		want         []string
	}{
		"a complete secret costs no request": {objects(secret(nil), account("builder", "1")), nil, nil},
		"an empty secret is filled for the account that is there live": {
			objects(secret(empty), account("builder", "1")), objects(secret(empty), account("builder", "1")), []string{"get serviceaccounts", "update secrets"}},
		"a secret that names its account is filled in one request": {
			objects(secret(tokenless), account("builder", "1")), objects(secret(tokenless)), []string{"update secrets"}},
		"an account the cache does not have yet is found live": {
			objects(secret(empty)), objects(secret(empty), account("builder", "1")), []string{"get serviceaccounts", "update secrets"}},
		"a secret whose account is gone is deleted after a live read": {
			objects(secret(nil)), objects(secret(nil)), []string{"get serviceaccounts", "delete secrets"}},
		"a secret of a former account of the name is deleted after a live read": {
			objects(secret(nil), account("builder", "2")), objects(secret(nil), account("builder", "2")), []string{"get serviceaccounts", "delete secrets"}},
		"a secret that is being deleted is not deleted again": {
			objects(secret(func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{} })), nil, []string{"get serviceaccounts"}},
		"a deleted secret is taken off its account": {
			objects(listing()), objects(listing()), []string{"get serviceaccounts", "get secrets", "update serviceaccounts"}},
		"also off one that the cache does not show yet": {
			objects(account("builder", "1")), objects(listing()), []string{"get serviceaccounts", "get secrets", "update serviceaccounts"}},
		"a deleted secret that is listed nowhere is read of once": {
			objects(account("builder", "1")), objects(account("builder", "1")), []string{"get serviceaccounts"}},
		"a secret that came again stays listed": {
			objects(listing()), objects(listing(), secret(nil)), []string{"get serviceaccounts", "get secrets"}},
		"a deleted secret of a former account stays listed by the new one": {
			objects(renewed), objects(renewed), nil},
		"a deleted secret without an account is nothing to do": {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := world(t, tc.cached, tc.live)
			if err := c.bySecret.Reconcile(t.Context(), keyOf(secret(nil))).Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, did(client)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDeletedTokensAreDeletedAsTheyWereJudged(t *testing.T) {
	c, client := world(t, objects(secret(nil)), objects(secret(nil)))
	if err := c.byAccount.Reconcile(t.Context(), accountKey{"team", "builder", "uid-1"}).Err(); err != nil {
		t.Fatal(err)
	}
	last := client.Actions()[len(client.Actions())-1].(clienttesting.DeleteActionImpl)
	got := last.DeleteOptions.Preconditions
	if got == nil || *got.UID != "s-1" || *got.ResourceVersion != "5" {
		t.Errorf("deleted with preconditions %v", got)
	}
}

func TestSyncAccount(t *testing.T) {
	another := secret(func(s *corev1.Secret) { s.Name, s.Annotations["kubernetes.io/service-account.name"] = "d", "deployer" })
	newer := secret(func(s *corev1.Secret) { s.Name, s.Annotations["kubernetes.io/service-account.uid"] = "n", "uid-2" })
	for name, tc := range map[string]struct {
		cached, live []runtime.Object
		want         []string
	}{
		"an account that is there costs no request": {objects(account("builder", "1"), secret(nil)), nil, nil},
		"an account that only the cache lost keeps its tokens": {
			objects(secret(nil)), objects(account("builder", "1")), []string{"get serviceaccounts"}},
		"the tokens of an account that is gone are deleted, others are not": {
			objects(secret(nil), another, newer), objects(secret(nil), another, newer), []string{"get serviceaccounts", "delete secrets"}},
		"an account replaced by another of its name loses its tokens": {
			objects(secret(nil), account("builder", "2")), objects(secret(nil), account("builder", "2")), []string{"get serviceaccounts", "delete secrets"}},
		"a token that names no UID is of the account that has the name now": {
			objects(secret(empty), account("builder", "2")), objects(secret(empty), account("builder", "2")), []string{"get serviceaccounts"}},
		"a token that names no UID goes with the last of the name": {
			objects(secret(empty)), objects(secret(empty)), []string{"get serviceaccounts", "delete secrets"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := world(t, tc.cached, tc.live)
			if err := c.byAccount.Reconcile(t.Context(), accountKey{"team", "builder", "uid-1"}).Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, did(client)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	resource := corev1.Resource("secrets")
	for name, tc := range map[string]struct {
		verb, on string
		cached   []runtime.Object
		err      error
		fail     bool
	}{
		"a failed live read deletes nothing":             {"get", "serviceaccounts", objects(secret(nil)), errors.New("timeout"), true},
		"a secret changed since is judged again":         {"delete", "secrets", objects(secret(nil)), apierrors.NewConflict(resource, "x", errors.New("changed")), true},
		"a secret deleted by somebody else is fine":      {"delete", "secrets", objects(secret(nil)), apierrors.NewNotFound(resource, "x"), false},
		"a conflict while filling is retried":            {"update", "secrets", objects(secret(empty), account("builder", "1")), apierrors.NewConflict(resource, "x", errors.New("changed")), true},
		"a conflict while unlisting is retried":          {"update", "serviceaccounts", objects(listing()), apierrors.NewConflict(corev1.Resource("serviceaccounts"), "x", errors.New("changed")), true},
		"an account deleted meanwhile lists nothing":     {"update", "serviceaccounts", objects(listing()), apierrors.NewNotFound(corev1.Resource("serviceaccounts"), "x"), false},
		"a secret that may still be there stays listed":  {"get", "secrets", objects(listing()), errors.New("timeout"), true},
		"a secret deleted while it is filled is no more": {"update", "secrets", objects(secret(empty), account("builder", "1")), apierrors.NewNotFound(resource, "x"), false},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := world(t, tc.cached, tc.cached)
			client.PrependReactor(tc.verb, tc.on, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			got := c.bySecret.Reconcile(t.Context(), keyOf(secret(nil))).Err()
			if (got != nil) != tc.fail {
				t.Errorf("got %v, want an error: %v", got, tc.fail)
			}
			if tc.on == "serviceaccounts" && slices.Contains(did(client), "delete secrets") {
				t.Error("deleted a secret without knowing that its account is gone")
			}
		})
	}
}

func TestFromNewSecretToDeletedAccount(t *testing.T) {
	client := fake.NewClientset(account("builder", "1"))
	shared, own := informers.NewSharedInformerFactory(client, 0), Informers(client, 0)
	c, err := New(shared.Core().V1().ServiceAccounts(), own.Core().V1().Secrets(), fixture.Hand(client, nil), Options{Key: rsaKey, RootCA: ca, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, shared, own)

	secrets := client.CoreV1().Secrets("team")
	if _, err := secrets.Create(t.Context(), secret(empty), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the secret is filled", func() bool {
		s, err := secrets.Get(t.Context(), "builder-token", metav1.GetOptions{})
		return err == nil && len(s.Data["token"]) > 0 && s.Annotations["kubernetes.io/service-account.uid"] == "uid-1"
	})
	if err := client.CoreV1().ServiceAccounts("team").Delete(t.Context(), "builder", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the secret is deleted", func() bool {
		_, err := secrets.Get(t.Context(), "builder-token", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestTheDebugPageShowsNoToken(t *testing.T) {
	client := fake.NewClientset(account("builder", "1"), secret(empty))
	shared, own := informers.NewSharedInformerFactory(client, 0), Informers(client, 0)
	c, err := New(shared.Core().V1().ServiceAccounts(), own.Core().V1().Secrets(), fixture.Hand(client, nil), Options{Key: rsaKey, RootCA: ca})
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, shared, own)
	var page, token string
	fixture.Eventually(t, "the page shows that the secret was filled", func() bool {
		s, err := client.CoreV1().Secrets("team").Get(t.Context(), "builder-token", metav1.GetOptions{})
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest("GET", "/?key=team/builder-token", nil))
		if page = w.Body.String(); err == nil {
			token = string(s.Data["token"])
		}
		return token != "" && strings.Contains(page, "update Secret: done")
	})
	for _, value := range []string{token, string(ca), base64.StdEncoding.EncodeToString([]byte(token)), base64.StdEncoding.EncodeToString(ca)} {
		if strings.Contains(page, value) {
			t.Errorf("shows %q: %s", value, page)
		}
	}
}

func TestARefusedDeletionIsTriedAgain(t *testing.T) {
	gone := accountKey{"team", "builder", "uid-1"}
	for name, refusal := range map[string]error{
		"as a webhook may refuse it": apierrors.NewConflict(corev1.Resource("secrets"), "x", errors.New("denied")),
		"as an odd answer":           apierrors.NewNotFound(corev1.Resource("secrets"), "x"),
	} {
		t.Run(name, func(t *testing.T) {
			c, client := world(t, objects(secret(nil)), objects(secret(nil)))
			c.LookLive(fixture.Live(client))
			refuse := true
			client.PrependReactor("delete", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return refuse, nil, refusal })
			for _, err := range []error{c.byAccount.Reconcile(t.Context(), gone).Err(), c.bySecret.Reconcile(t.Context(), keyOf(secret(nil))).Err()} {
				behind := append(c.bySecret.Behind(keyOf(secret(nil))), c.byAccount.Behind(gone)...)
				if !errors.Is(err, refusal) || len(behind) > 0 {
					t.Errorf("got %v, and waits for %v", err, behind)
				}
			}
			refuse = false
			if err := c.byAccount.Reconcile(t.Context(), gone).Err(); err != nil {
				t.Error(err)
			}
			if _, err := client.CoreV1().Secrets("team").Get(t.Context(), "builder-token", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the token: %v", err)
			}
		})
	}
}
