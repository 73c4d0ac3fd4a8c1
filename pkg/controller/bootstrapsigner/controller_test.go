package bootstrapsigner

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/bootstraptokens"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func hand(client fixture.Invoker, clock *testclock.FakeClock) reconcile.Hand {
	h := fixture.Hand(client, nil)
	h.Clock = clock
	return h
}

func TestSignaturesFollowTheTokens(t *testing.T) {
	client := fake.NewClientset(info("kubeconfig", content))
	own, tokens := Informers(client, 0), bootstraptokens.Informers(client, 0)
	clock := testclock.NewFakeClock(noon)
	c, err := New(own.Core().V1().ConfigMaps(), tokens.Core().V1().Secrets(), hand(client, clock))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, own, tokens)

	signed := func(what, want string, step time.Duration) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			clock.Step(step)
			found, err := client.CoreV1().ConfigMaps("kube-public").Get(ctx, "cluster-info", metav1.GetOptions{})
			return err == nil && found.Data["jws-kubeconfig-good00"] == want && found.Data["kubeconfig"] == content, nil
		})
		if err != nil {
			t.Fatalf("waited in vain: %s", what)
		}
	}
	secrets := client.CoreV1().Secrets("kube-system")
	if _, err := secrets.Create(t.Context(), ending("good00", time.Hour), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	signed("the new token signs", signature, 0)
	signed("the signature goes when the token ends", "", 10*time.Minute)
	if _, err := secrets.Update(t.Context(), token("good00"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	signed("it comes back when the token is valid again", signature, 0)
	if err := secrets.Delete(t.Context(), "bootstrap-token-good00", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	signed("it goes with the token", "", 0)
}

func TestTheCacheHoldsOneConfigMap(t *testing.T) {
	client := fake.NewClientset()
	own := Informers(client, 0)
	own.Core().V1().ConfigMaps().Informer()
	own.StartWithContext(t.Context())
	own.WaitForCacheSync(t.Context().Done())
	list, ok := client.Actions()[0].(clienttesting.ListActionImpl)
	if !ok || list.Namespace != "kube-public" || list.ListRestrictions.Fields.String() != "metadata.name=cluster-info" {
		t.Errorf("listed %v", client.Actions()[0])
	}
}

func TestErrorsOfWrites(t *testing.T) {
	resource := corev1.Resource("configmaps")
	invalid := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), "cluster-info", nil)
	for name, tc := range map[string]struct {
		refusal error
		fail    bool
		// immutable is the config map.
		immutable bool
	}{
		"a conflict is judged again":                     {apierrors.NewConflict(resource, "cluster-info", errors.New("changed")), true, false},
		"an immutable config map is an error":            {invalid, true, true},
		"a refusal by an admission policy is retried":    {invalid, true, false},
		"a conflict of an immutable one is judged again": {apierrors.NewConflict(resource, "cluster-info", errors.New("changed")), true, true},
		"a config map that is gone is fine":              {apierrors.NewNotFound(resource, "cluster-info"), false, false},
		"a timeout is retried":                           {errors.New("timeout"), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.refusal })
			factory := informers.NewSharedInformerFactory(client, 0)
			c, err := New(factory.Core().V1().ConfigMaps(), factory.Core().V1().Secrets(), hand(client, testclock.NewFakeClock(noon)))
			if err != nil {
				t.Fatal(err)
			}
			cm := info("kubeconfig", content)
			cm.Immutable = &tc.immutable
			_ = factory.Core().V1().ConfigMaps().Informer().GetStore().Add(cm)
			_ = factory.Core().V1().Secrets().Informer().GetStore().Add(token("good00"))
			got := c.Reconcile(t.Context(), clusterInfo)
			if (got.Err() != nil) != tc.fail {
				t.Errorf("got %v", got.Err())
			}
			if terminal := got == runner.Terminal(got.Err()); terminal != (tc.immutable && apierrors.IsInvalid(tc.refusal)) {
				t.Errorf("terminal: %t", terminal)
			}
		})
	}
}

func TestWithoutAConfigMapNothingIsDone(t *testing.T) {
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	c, err := New(factory.Core().V1().ConfigMaps(), factory.Core().V1().Secrets(), hand(client, testclock.NewFakeClock(noon)))
	if err != nil {
		t.Fatal(err)
	}
	_ = factory.Core().V1().Secrets().Informer().GetStore().Add(token("good00"))
	if err := c.Reconcile(t.Context(), clusterInfo).Err(); err != nil || len(client.Actions()) > 0 {
		t.Errorf("got %v and sent %v", err, client.Actions())
	}
}
