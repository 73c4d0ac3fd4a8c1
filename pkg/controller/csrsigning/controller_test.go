package csrsigning

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
	"github.com/kube-kcm/kube-controller-manager/test/certs"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// bench is a controller whose signers share one pair; its caches are filled by hand.
type bench struct {
	*Controller
	t      *testing.T
	client *fake.Clientset
	clock  *testclock.FakeClock
	dir    string
	log    ktesting.Buffer
	ctx    context.Context
	add    func(*certificatesv1.CertificateSigningRequest)
}

func newBench(t *testing.T, held content, objects ...*certificatesv1.CertificateSigningRequest) *bench {
	t.Helper()
	rig := fixture.New(fake.NewClientset(), noon)
	b := &bench{t: t, client: rig.Client, clock: rig.Clock, dir: t.TempDir()}
	files := in(t, b.dir, held)
	informer := rig.In.Certificates().V1().CertificateSigningRequests()
	var err error
	b.Controller, err = New(informer, rig.Hand(), Options{
		Signers: map[string]Files{serving: files, kubelet: files, apiClient: files, LegacyUnknown: files}, Duration: year})
	if err != nil {
		t.Fatal(err)
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	b.log = logger.GetSink().(ktesting.Underlier).GetBuffer()
	b.ctx = klog.NewContext(t.Context(), logger)
	b.add = func(csr *certificatesv1.CertificateSigningRequest) {
		if err := informer.Informer().GetStore().Add(csr); err != nil {
			t.Fatal(err)
		}
		if _, err := b.client.CertificatesV1().CertificateSigningRequests().Create(t.Context(), csr, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, csr := range objects {
		b.add(csr)
	}
	return b
}

func (b *bench) signer(name string) *signer {
	b.t.Helper()
	for _, s := range b.signers {
		if s.name == name {
			return s
		}
	}
	b.t.Fatalf("no signer %s", name)
	return nil
}

func (b *bench) live(name string) *certificatesv1.CertificateSigningRequest {
	b.t.Helper()
	csr, err := b.client.CertificatesV1().CertificateSigningRequests().Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return csr
}

// issuer signs one more request and returns by whom it was signed.
func (b *bench) issuer(name string) string {
	b.t.Helper()
	csr := request(b.t, apiClient, "CN=jane", plainClient, approved)
	csr.Name = name
	b.add(csr)
	if err := b.signer(apiClient).Reconcile(b.ctx, name).Err(); err != nil {
		b.t.Fatal(err)
	}
	held, err := certs.Describe(b.live(name).Status.Certificate)
	if err != nil {
		b.t.Fatal(err)
	}
	return held["issuer"].(string)
}

func TestEachSignerActsForItselfOnly(t *testing.T) {
	b := newBench(t, newAuthority(t, "a", noon.Add(year)), request(t, apiClient, "CN=jane", plainClient, approved))
	for _, other := range []string{serving, kubelet, LegacyUnknown} {
		if r := b.signer(other).Reconcile(b.ctx, "mine"); r.Err() != nil || len(b.live("mine").Status.Certificate) > 0 {
			t.Errorf("%s signed: %v", other, r.Err())
		}
	}
	if r := b.signer(apiClient).Reconcile(b.ctx, "mine"); r.Err() != nil || len(b.live("mine").Status.Certificate) == 0 {
		t.Errorf("not signed: %v", r.Err())
	}
	if len(b.live("mine").Status.Conditions) != 1 {
		t.Errorf("conditions were changed: %v", b.live("mine").Status.Conditions)
	}
}

func TestARefusalIsWrittenOnce(t *testing.T) {
	b := newBench(t, newAuthority(t, "a", noon.Add(year)), request(t, apiClient, "CN=jane", "server auth", approved))
	if err := b.signer(apiClient).Reconcile(b.ctx, "mine").Err(); err != nil {
		t.Fatal(err)
	}
	conditions := b.live("mine").Status.Conditions
	if len(conditions) != 2 {
		t.Fatalf("conditions %v", conditions)
	}
	if c := conditions[1]; c.Type != failed || c.Status != "True" || c.Reason != "SignerValidationFailure" ||
		c.Message != "invalid usage for client certificate: server auth" || !c.LastUpdateTime.Time.Equal(noon) {
		t.Errorf("condition %+v", c)
	}
}

func TestErrorsOfWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		fail bool
	}{
		"a request that is gone is done":      {apierrors.NewNotFound(certificates.Resource, "mine"), false},
		"a conflict is retried":               {apierrors.NewConflict(certificates.Resource, "mine", errors.New("changed")), true},
		"a refusal by the server is retried":  {apierrors.NewForbidden(certificates.Resource, "mine", errors.New("role")), true},
		"so is a server that does not answer": {errors.New("connection refused"), true},
	} {
		for _, usages := range []string{plainClient, "any"} {
			t.Run(name+", "+usages, func(t *testing.T) {
				b := newBench(t, newAuthority(t, "a", noon.Add(year)), request(t, apiClient, "CN=jane", usages, approved))
				b.client.PrependReactor("update", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
				got := b.signer(apiClient).Reconcile(b.ctx, "mine").Err()
				if (got != nil) != tc.fail || tc.fail && !errors.Is(got, tc.err) {
					t.Errorf("got %v", got)
				}
			})
		}
	}
}

func TestAChangedPairIsUsedAndABadOneIsToldOnce(t *testing.T) {
	first, second := newAuthority(t, "first", noon.Add(year)), newAuthority(t, "second", noon.Add(year))
	b := newBench(t, first)
	step := func(what string, held content, want, said string) {
		t.Helper()
		mark := len(b.log.String())
		in(t, b.dir, held)
		b.clock.Step(2 * time.Second)
		for range 3 {
			b.files.Reconcile(b.ctx, Files{Cert: b.dir + "/ca.crt", Key: b.dir + "/ca.key"})
			b.clock.Step(2 * time.Second)
		}
		if got := b.issuer(strings.ReplaceAll(what, " ", "-")); got != want {
			t.Errorf("%s: signed by %s, want %s", what, got, want)
		}
		b.clock.Step(2 * time.Second)
		if log := b.log.String()[mark:]; (strings.Count(log, "signing files") == 1) != (said != "") || !strings.Contains(log, said) {
			t.Errorf("%s: the log says\n%s", what, log)
		}
	}
	step("nothing changed", first, "CN=first", "")
	step("a new pair", second, "CN=second", "the new pair is in use")
	step("a key of another pair", content{second.cert, first.key}, "CN=second", "private key does not match public key")
	step("the same again", content{second.cert, first.key}, "CN=second", "")
	step("no certificate at all", content{[]byte("garbage"), first.key}, "CN=second", "failed to find any PEM data in certificate input")
	step("a chain", content{append(append([]byte{}, second.cert...), first.cert...), second.key}, "CN=second", "expected 1 certificate, found 2")
	step("back to what is in use", second, "CN=second", "")
	step("a key of another pair once more", content{second.cert, first.key}, "CN=second", "the previous pair stays in use")
	step("the first pair whole", first, "CN=first", "the new pair is in use")
	if err := os.Remove(b.dir + "/ca.key"); err != nil {
		t.Fatal(err)
	}
	b.clock.Step(2 * time.Second)
	if got := b.issuer("without-a-key-file"); got != "CN=first" || !strings.Contains(b.log.String(), "no such file") {
		t.Errorf("without a key file: signed by %s", got)
	}
}

func TestRequestsThatAnExpiredAuthorityCouldNotSignAreTriedWithTheNext(t *testing.T) {
	b := newBench(t, newAuthority(t, "old", noon.Add(-time.Minute)),
		request(t, apiClient, "CN=jane", plainClient, approved))
	if err := b.signer(apiClient).Reconcile(b.ctx, "mine").Err(); err == nil || !strings.Contains(err.Error(), "expired in the past") {
		t.Fatalf("got %v", err)
	}
	in(t, b.dir, newAuthority(t, "new", noon.Add(year)))
	b.clock.Step(filesPeriod)
	b.files.Reconcile(b.ctx, Files{Cert: b.dir + "/ca.crt", Key: b.dir + "/ca.key"})
	if b.signer(apiClient).Len() != 1 || b.signer(serving).Len() != 0 {
		t.Errorf("%d requests wait for the signer, %d for another", b.signer(apiClient).Len(), b.signer(serving).Len())
	}
	if err := b.signer(apiClient).Reconcile(b.ctx, "mine").Err(); err != nil || len(b.live("mine").Status.Certificate) == 0 {
		t.Errorf("not signed with the new pair: %v", err)
	}
}

func TestABrokenRequestIsGivenUp(t *testing.T) {
	csr := request(t, apiClient, "CN=jane BROKEN=signature", plainClient, approved)
	b := newBench(t, newAuthority(t, "a", noon.Add(year)), csr)
	if err := b.signer(apiClient).Reconcile(b.ctx, "mine").Err(); !errors.Is(err, errRequest) {
		t.Errorf("got %v", err)
	}
	if len(b.live("mine").Status.Conditions) != 1 {
		t.Error("something was written")
	}
}

func TestARequestThatIsGoneIsNothingToDo(t *testing.T) {
	b := newBench(t, newAuthority(t, "a", noon.Add(year)))
	if r := b.signer(apiClient).Reconcile(b.ctx, "mine"); r.Err() != nil || len(b.client.Actions()) > 0 {
		t.Errorf("got %v and sent %v", r.Err(), b.client.Actions())
	}
}

func TestARefusalThatProvesNothingIsTriedAgain(t *testing.T) {
	for name, refusal := range map[string]error{
		"as an odd answer":           apierrors.NewNotFound(certificates.Resource, "mine"),
		"as a webhook may refuse it": apierrors.NewConflict(certificates.Resource, "mine", errors.New("denied")),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, newAuthority(t, "a", noon.Add(year)), request(t, apiClient, "CN=jane", plainClient, approved))
			b.LookLive(fixture.Live(b.client))
			refuse := true
			b.client.PrependReactor("update", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) { return refuse, nil, refusal })
			if err := b.signer(apiClient).Reconcile(b.ctx, "mine").Err(); !errors.Is(err, refusal) {
				t.Errorf("got %v", err)
			}
			refuse = false
			if err := b.signer(apiClient).Reconcile(b.ctx, "mine").Err(); err != nil || len(b.live("mine").Status.Certificate) == 0 {
				t.Errorf("not signed: %v", err)
			}
		})
	}
}

func TestTheDebugPageSaysWhichPairIsInUse(t *testing.T) {
	b := newBench(t, newAuthority(t, "a", noon.Add(year)))
	r := b.files.Reconcile(b.ctx, Files{Cert: b.dir + "/ca.crt", Key: b.dir + "/ca.key"})
	if r.Err() != nil || r.After() != filesPeriod {
		t.Errorf("got %v, again after %s", r.Err(), r.After())
	}
	if p := planFiles(b.signers[0].pair.authority(), noon); p.Why != "CN=a is in use, until 2027-11-21T12:00:00Z" {
		t.Errorf("says %q", p.Why)
	}
}

func TestSignersWithoutFilesHaveNoLoop(t *testing.T) {
	files := in(t, t.TempDir(), newAuthority(t, "a", noon.Add(year)))
	client := fake.NewClientset()
	c, err := New(informers.NewSharedInformerFactory(client, 0).Certificates().V1().CertificateSigningRequests(), fixture.Hand(client, nil),
		Options{Signers: map[string]Files{kubelet: files}})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.signers) != 1 || c.signers[0].name != kubelet || len(c.pairs) != 1 {
		t.Errorf("%d signers, %d pairs", len(c.signers), len(c.pairs))
	}
}

func TestFilesThatCannotBeUsedAtTheStart(t *testing.T) {
	good, other := newAuthority(t, "a", noon.Add(year)), newAuthority(t, "b", noon.Add(year))
	for name, tc := range map[string]struct {
		held    content
		message string
	}{
		"a key of another pair": {content{good.cert, other.key}, "private key does not match public key"},
		"no certificate":        {content{[]byte("x"), good.key}, "failed to find any PEM data in certificate input"},
		"no key":                {content{good.cert, nil}, "failed to find any PEM data in key input"},
		"a chain":               {content{append(append([]byte{}, good.cert...), other.cert...), good.key}, "expected 1 certificate, found 2"},
	} {
		t.Run(name, func(t *testing.T) {
			files := in(t, t.TempDir(), tc.held)
			client := fake.NewClientset()
			_, err := New(informers.NewSharedInformerFactory(client, 0).Certificates().V1().CertificateSigningRequests(), fixture.Hand(client, nil),
				Options{Signers: map[string]Files{serving: files}})
			if err == nil || !strings.Contains(err.Error(), tc.message) ||
				!strings.HasPrefix(err.Error(), `failed to init kubernetes.io/kubelet-serving certificate controller: error reading CA cert file "`+files.Cert) {
				t.Errorf("got %v", err)
			}
		})
	}
}
