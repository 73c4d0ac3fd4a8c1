package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/bootstraptokens"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/bootstrapsigner"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/legacytokencleaner"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/tokencleaner"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const (
	oneDay        = 24 * time.Hour
	cleanUpPeriod = 365 * oneDay
	invalidSince  = legacytokencleaner.InvalidSinceLabel
)

// accountConfig is that of a client with the rights of a service account.
func accountConfig(cp *harness.ControlPlane, account string) *rest.Config {
	config := rest.CopyConfig(cp.Admin)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kube-system:" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
	}
	return config
}

// handOf is what a controller writes with, by this configuration and this clock.
func handOf(t testing.TB, config *rest.Config, clock clock.WithTicker) reconcile.Hand {
	t.Helper()
	writer, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return reconcile.Hand{Client: writer, Clock: clock}
}

// asManager is what the caches read with, and its configuration.
func asManager(t testing.TB, cp *harness.ControlPlane) (kubernetes.Interface, *rest.Config) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cp.ManagerKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, config
}

// runUntilEnd runs a controller on its caches until the test ends.
func runUntilEnd(t testing.TB, loop interface{ Run(context.Context) }, caches ...informers.SharedInformerFactory) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	for _, factory := range caches {
		factory.StartWithContext(ctx)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); loop.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		for _, factory := range caches {
			factory.Shutdown()
		}
	})
}

func bootstrapToken(id string, expires time.Time) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: "bootstrap.kubernetes.io/token",
		StringData: map[string]string{"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true", "expiration": expires.Format(time.RFC3339)},
	}
}

// signs waits until exactly these tokens sign the config map; meanwhile is done before each look.
func signs(t testing.TB, client kubernetes.Interface, meanwhile func(), ids ...string) {
	t.Helper()
	harness.Eventually(t, patient, func(ctx context.Context) error {
		meanwhile()
		info, err := client.CoreV1().ConfigMaps("kube-public").Get(ctx, "cluster-info", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, id := range ids {
			if info.Data["jws-kubeconfig-"+id] == "" {
				return fmt.Errorf("%s does not sign", id)
			}
		}
		if len(info.Data) != len(ids)+1 {
			return fmt.Errorf("there is more than the kubeconfig and signatures of %v: %v", ids, info.Data)
		}
		return nil
	})
}

func create[T any](t testing.TB, with func(context.Context, T, metav1.CreateOptions) (T, error), objects ...T) {
	t.Helper()
	for _, object := range objects {
		if _, err := with(t.Context(), object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

func TestBootstrapTokensEndAtTheirTime(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	reader, _ := asManager(t, cp)
	now := time.Now().Truncate(time.Second)
	clock := testclock.NewFakeClock(now)
	secrets := client.CoreV1().Secrets("kube-system")
	create(t, client.CoreV1().ConfigMaps("kube-public").Create, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-info"}, Data: map[string]string{"kubeconfig": "a cluster"}})
	create(t, secrets.Create, bootstrapToken("minute", now.Add(time.Minute)), bootstrapToken("hour00", now.Add(time.Hour)), bootstrapToken("never0", now.AddDate(100, 0, 0)))

	info, tokens := bootstrapsigner.Informers(reader, 0), bootstraptokens.Informers(reader, 0)
	signer, err := bootstrapsigner.New(info.Core().V1().ConfigMaps(), tokens.Core().V1().Secrets(),
		handOf(t, accountConfig(cp, "bootstrap-signer"), clock))
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, signer, info, tokens)
	signs(t, client, func() {}, "minute", "hour00", "never0")
	// Without a cleaner the signature goes alone.
	step := func() { clock.Step(10 * time.Second) }
	signs(t, client, step, "hour00", "never0")
	if passed := clock.Since(now); passed < time.Minute || passed > 50*time.Minute {
		t.Errorf("the signature went after %s", passed)
	}

	own := bootstraptokens.Informers(reader, 0)
	cleaner, err := tokencleaner.New(own.Core().V1().Secrets(), handOf(t, accountConfig(cp, "token-cleaner"), clock))
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, cleaner, own)
	gone := func(name string, meanwhile func()) {
		t.Helper()
		harness.Eventually(t, patient, func(ctx context.Context) error {
			meanwhile()
			_, err := secrets.Get(ctx, "bootstrap-token-"+name, metav1.GetOptions{})
			if err == nil {
				return errors.New("it is still there")
			}
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	gone("minute", func() {})
	gone("hour00", func() { clock.Step(time.Minute) })
	if passed := clock.Since(now); passed < time.Hour {
		t.Errorf("the token went after %s", passed)
	}
	signs(t, client, func() {}, "never0")
}

// builderToken is a token secret of service account builder, which lists all but "by-hand".
func builderToken(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "builder"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
}

func podThatMounts(secret string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mounts"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "example.com/web:1"}},
		Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}},
	}}
}

// marks waits for the day on which the token was marked, while time passes.
func marks(t testing.TB, client kubernetes.Interface, clock *testclock.FakeClock, name string) time.Time {
	t.Helper()
	var marked time.Time
	harness.Eventually(t, patient, func(ctx context.Context) error {
		clock.Step(5 * oneDay)
		secret, err := client.CoreV1().Secrets("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		marked, err = time.Parse(time.DateOnly, secret.Labels[invalidSince])
		return err
	})
	return marked
}

func TestUnusedTokensAreRetiredInTheirTime(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	reader, manager := asManager(t, cp)
	core := client.CoreV1()
	create(t, core.ServiceAccounts("default").Create,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "builder"}, Secrets: []corev1.ObjectReference{{Name: "idle"}, {Name: "mounted"}}})
	create(t, core.Secrets("default").Create, builderToken("idle"), builderToken("mounted"), builderToken("by-hand"))
	create(t, core.Pods("default").Create, podThatMounts("mounted"))
	var began time.Time
	harness.Eventually(t, patient, func(ctx context.Context) error {
		tracking, err := core.ConfigMaps("kube-system").Get(ctx, legacytokencleaner.TrackingConfigMap, metav1.GetOptions{})
		if err != nil {
			return err
		}
		began, err = time.Parse(time.DateOnly, tracking.Data["since"])
		return err
	})

	clock := testclock.NewFakeClock(time.Now())
	shared := informers.NewSharedInformerFactory(reader, 0)
	c, err := legacytokencleaner.New(shared.Core().V1().ServiceAccounts(), handOf(t, manager, clock).Reader(),
		handOf(t, accountConfig(cp, "legacy-service-account-token-cleaner"), clock), legacytokencleaner.Options{CleanUpPeriod: cleanUpPeriod})
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, c, shared)

	marked := marks(t, client, clock, "idle")
	if due := began.Add(oneDay + cleanUpPeriod); marked.Before(due.Truncate(oneDay)) {
		t.Errorf("marked on %s, which is before %s", marked, due)
	}
	harness.Eventually(t, patient, func(ctx context.Context) error {
		clock.Step(5 * oneDay)
		_, err := core.Secrets("default").Get(ctx, "idle", metav1.GetOptions{})
		if err == nil {
			return errors.New("the token is still there")
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	if due := marked.Add(cleanUpPeriod); clock.Now().Before(due) {
		t.Errorf("deleted on %s, which is before %s", clock.Now(), due)
	}
	for _, name := range []string{"mounted", "by-hand"} {
		secret, err := core.Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || secret.Labels[invalidSince] != "" {
			t.Errorf("%s: %v, marked %q", name, err, secret.Labels[invalidSince])
		}
	}
	if err := core.Pods("default").Delete(t.Context(), "mounts", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	marks(t, client, clock, "mounted")
}
