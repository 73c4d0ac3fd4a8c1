package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/csrcleaner"
	"github.com/kube-kcm/kube-controller-manager/test/certs"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const (
	kubeletClient  = certificatesv1.KubeAPIServerClientKubeletSignerName
	kubeletServing = certificatesv1.KubeletServingSignerName
	userClient     = certificatesv1.KubeAPIServerClientSignerName
)

// ask creates a request with these conditions.
func ask(t testing.TB, client kubernetes.Interface, name, signer, words, usages string, conditions ...certificatesv1.CertificateSigningRequestCondition) {
	t.Helper()
	text, err := certs.Request(words)
	if err != nil {
		t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{Request: text, SignerName: signer}}
	for usage := range strings.SplitSeq(usages, ",") {
		csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.KeyUsage(usage))
	}
	requests := client.CertificatesV1().CertificateSigningRequests()
	made, err := requests.Create(t.Context(), csr, metav1.CreateOptions{})
	for _, condition := range conditions {
		if err != nil {
			break
		}
		made.Status.Conditions = append(made.Status.Conditions, condition)
		if condition.Type == certificatesv1.CertificateFailed {
			made, err = requests.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
		} else {
			made, err = requests.UpdateApproval(t.Context(), name, made, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func condition(kind certificatesv1.RequestConditionType, at time.Time) certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: "True", Reason: "Test", LastUpdateTime: metav1.NewTime(at)}
}

// issued waits for the certificate of a request.
func issued(t testing.TB, client kubernetes.Interface, name string) []byte {
	t.Helper()
	var text []byte
	harness.Eventually(t, patient, func(ctx context.Context) error {
		csr, err := client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		if err == nil && len(csr.Status.Certificate) == 0 {
			err = fmt.Errorf("%s has no certificate: %v", name, csr.Status.Conditions)
		}
		if err == nil {
			text = csr.Status.Certificate
		}
		return err
	})
	return text
}

// TestCertificatesVerify lets others judge what was signed: crypto/x509, openssl
// where there is one, and the API server.
func TestCertificatesVerify(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	m := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{
		"--controllers=certificatesigningrequest-signing-controller,certificatesigningrequest-approving-controller"}})
	ca, err := os.ReadFile(cp.File("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	approved := condition(certificatesv1.CertificateApproved, time.Now())
	for i, tc := range []struct {
		signer, words, usages string
		use                   x509.ExtKeyUsage
		host                  string
	}{
		{kubeletClient, "O=system:nodes CN=system:node:a KEY=ecdsa", "digital signature,key encipherment,client auth", x509.ExtKeyUsageClientAuth, ""},
		{kubeletServing, "O=system:nodes CN=system:node:a DNS=a.example IP=10.0.0.1 KEY=ecdsa", "digital signature,server auth", x509.ExtKeyUsageServerAuth, "a.example"},
		{kubeletServing, "O=system:nodes CN=system:node:a IP=10.0.0.1 KEY=rsa", "digital signature,key encipherment,server auth", x509.ExtKeyUsageServerAuth, "10.0.0.1"},
		{userClient, "O=devs CN=jane KEY=rsa", "client auth", x509.ExtKeyUsageClientAuth, ""},
		{userClient, "O=devs CN=jane KEY=ecdsa CA=true", "client auth,digital signature", x509.ExtKeyUsageClientAuth, ""},
		{userClient, "O=devs CN=jane", "client auth", x509.ExtKeyUsageClientAuth, ""},
	} {
		t.Run(tc.signer+" "+tc.words, func(t *testing.T) {
			name := fmt.Sprint("request-", i)
			if tc.signer == kubeletClient { // the other controller approves it
				ask(t, client, name, tc.signer, tc.words, tc.usages)
			} else {
				ask(t, client, name, tc.signer, tc.words, tc.usages, approved)
			}
			text := issued(t, client, name)
			certificate, err := certs.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: tc.host, KeyUsages: []x509.ExtKeyUsage{tc.use}}); err != nil {
				t.Errorf("crypto/x509: %v", err)
			}
			opensslVerifies(t, cp.File("ca.crt"), text, tc.use)
			if tc.use == x509.ExtKeyUsageClientAuth {
				admitted(t, cp, text, tc.words, certificate.Subject.CommonName)
			}
		})
	}
	if found := m.Misbehaviour(0); found != "" {
		t.Error(found)
	}
}

// opensslVerifies asks openssl too, where it is installed.
func opensslVerifies(t *testing.T, caFile string, text []byte, use x509.ExtKeyUsage) {
	t.Helper()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Log("openssl is not installed: crypto/x509 alone has judged")
		return
	}
	file := filepath.Join(t.TempDir(), "issued.crt")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	purpose := map[x509.ExtKeyUsage]string{x509.ExtKeyUsageClientAuth: "sslclient", x509.ExtKeyUsageServerAuth: "sslserver"}[use]
	out, err := exec.CommandContext(t.Context(), openssl, "verify", "-CAfile", caFile, "-purpose", purpose, file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "issued.crt: OK") {
		t.Errorf("openssl: %v\n%s", err, out)
	}
}

// admitted shows the certificate to the API server, which must know its user.
func admitted(t *testing.T, cp *harness.ControlPlane, text []byte, words, user string) {
	t.Helper()
	kind := "ed25519"
	if _, named, ok := strings.Cut(words, "KEY="); ok {
		kind, _, _ = strings.Cut(named, " ")
	}
	signer, err := certs.Key(kind)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if _, err := tls.X509KeyPair(text, key); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(cp.Admin)
	config.CertData, config.KeyData = text, key
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if review.Status.UserInfo.Username != user {
		t.Errorf("the API server sees %v, want %s", review.Status.UserInfo, user)
	}
}

// TestSigningFilesAreReplacedWhileItRuns changes the files in every way that an
// operator may, good and bad.
func TestSigningFilesAreReplacedWhileItRuns(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	dir := t.TempDir()
	// As in a mounted Secret: the files are links into a directory that is swapped whole.
	version := 0
	put := func(certificate, key []byte) {
		t.Helper()
		version++
		held := filepath.Join(dir, fmt.Sprint("held-", version))
		swap := filepath.Join(dir, "swap")
		for _, err := range []error{
			os.Mkdir(held, 0o700), os.WriteFile(filepath.Join(held, "ca.crt"), certificate, 0o600),
			os.WriteFile(filepath.Join(held, "ca.key"), key, 0o600), os.Symlink(held, swap), os.Rename(swap, filepath.Join(dir, "data")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	now := time.Now()
	authority := func(name string, end time.Time) (certificate, key []byte) {
		t.Helper()
		certificate, key, err := certs.Authority(name, now.Add(-time.Hour), end)
		if err != nil {
			t.Fatal(err)
		}
		return certificate, key
	}
	firstCert, firstKey := authority("first", now.Add(24*time.Hour))
	secondCert, secondKey := authority("second", now.Add(24*time.Hour))
	expiredCert, expiredKey := authority("expired", now.Add(-time.Minute))
	put(firstCert, firstKey)
	m := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{
		"--controllers=certificatesigningrequest-signing-controller",
		"--cluster-signing-cert-file=" + dir + "/data/ca.crt", "--cluster-signing-key-file=" + dir + "/data/ca.key"}})
	asked := 0
	request := func() string {
		asked++
		name := fmt.Sprint("request-", asked)
		ask(t, client, name, userClient, "CN=jane", "client auth", condition(certificatesv1.CertificateApproved, now))
		return name
	}
	issuer := func(name string) any {
		held, err := certs.Describe(issued(t, client, name))
		if err != nil {
			t.Fatal(err)
		}
		return held["issuer"]
	}
	// The files are read before a signature, at most once a second: some request sees the change.
	signedBy := func(want, said string, mark int64) {
		t.Helper()
		harness.Eventually(t, patient, func(context.Context) error {
			if got := issuer(request()); got != want {
				return fmt.Errorf("signed by %v, want %s", got, want)
			}
			if log := m.Log(mark); !strings.Contains(log, said) {
				return fmt.Errorf("the log lacks %q", said)
			}
			return nil
		})
	}
	const stays = "the previous pair stays in use"
	signedBy("CN=first", "", 0)

	mark := m.LogMark()
	put(secondCert, secondKey)
	signedBy("CN=second", "the new pair is in use", mark)
	for _, bad := range []struct {
		certificate, key []byte
		said             string
	}{
		{firstCert, secondKey, "private key does not match public key"},
		{[]byte("garbage"), secondKey, "failed to find any PEM data in certificate input"},
		{append(append([]byte{}, firstCert...), secondCert...), firstKey, "expected 1 certificate, found 2"},
	} {
		mark = m.LogMark()
		put(bad.certificate, bad.key)
		signedBy("CN=second", bad.said, mark)
		for range 3 { // it is told once, however much is signed
			signedBy("CN=second", bad.said, mark)
		}
		if n := strings.Count(m.Log(mark), stays); n != 1 {
			t.Errorf("%s is told %d times", bad.said, n)
		}
	}
	mark = m.LogMark()
	if err := os.Remove(filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	signedBy("CN=second", "no such file or directory", mark)

	mark = m.LogMark()
	put(expiredCert, expiredKey)
	var waits string
	harness.Eventually(t, patient, func(context.Context) error {
		waits = request()
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Second, true, func(context.Context) (bool, error) {
			return strings.Contains(m.Log(mark), "expired in the past"), nil
		})
		if err != nil {
			return fmt.Errorf("the log lacks the expired authority: %w", err)
		}
		return nil
	})
	put(firstCert, firstKey)
	signedBy("CN=first", "the new pair is in use", mark)
	if got := issuer(waits); got != "CN=first" {
		t.Errorf("the request that waited is signed by %v", got)
	}
	if found := m.Misbehaviour(0); found != "" || !m.Process().Running() {
		t.Errorf("running: %t\n%s", m.Process().Running(), found)
	}
}

// makePast makes one request for each way in which time passes.
func makePast(t testing.TB, client kubernetes.Interface, at, end time.Time) {
	t.Helper()
	const signer = "example.com/signer"
	certificate, _, err := certs.Authority("issued", at.Add(-time.Hour), end)
	if err != nil {
		t.Fatal(err)
	}
	ask(t, client, "pending", signer, "CN=a", "client auth")
	ask(t, client, "denied", signer, "CN=a", "client auth", condition(certificatesv1.CertificateDenied, at))
	ask(t, client, "failed", signer, "CN=a", "client auth", condition(certificatesv1.CertificateFailed, at))
	ask(t, client, "unissued", signer, "CN=a", "client auth", condition(certificatesv1.CertificateApproved, at))
	for name, when := range map[string]time.Time{"issued": at, "ended": time.Now()} {
		ask(t, client, name, signer, "CN=a", "client auth", condition(certificatesv1.CertificateApproved, when))
		csr, err := client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		csr.Status.Certificate = certificate
		if _, err := client.CertificatesV1().CertificateSigningRequests().UpdateStatus(t.Context(), csr, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// remain waits until these requests, and no others, are left.
func remain(t testing.TB, client kubernetes.Interface, want ...string) {
	t.Helper()
	harness.Eventually(t, patient, func(ctx context.Context) error {
		list, err := client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var names []string
		for _, csr := range list.Items {
			names = append(names, csr.Name)
		}
		if got := strings.Join(names, " "); got != strings.Join(want, " ") {
			return fmt.Errorf("left: %s, want %v", got, want)
		}
		return nil
	})
}

func TestPastRequestsAreDeleted(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	makePast(t, client, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Minute))
	ask(t, client, "young", "example.com/signer", "CN=a", "client auth", condition(certificatesv1.CertificateDenied, time.Now()))
	ask(t, client, "forgotten", "example.com/signer", "CN=a", "client auth", condition(certificatesv1.CertificateApproved, time.Now().Add(-25*time.Hour)))
	m := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--controllers=certificatesigningrequest-cleaner-controller"}})
	remain(t, client, "pending", "unissued", "young")
	for _, event := range cp.Audit.Since(0) {
		if event.Forbidden() {
			t.Errorf("forbidden: %s", event)
		}
	}
	if found := m.Misbehaviour(0); found != "" {
		t.Error(found)
	}
}

// TestTimeDeletesRequests lets a day pass in a moment: creation times cannot be
// set, but the controller's clock can.
func TestTimeDeletesRequests(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	now := time.Now()
	makePast(t, client, now, now.Add(30*time.Minute))
	clock := testclock.NewFakeClock(now)
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := csrcleaner.New(shared.Certificates().V1().CertificateSigningRequests(), handOf(t, cp.Admin, clock))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	shared.Start(ctx.Done())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended; shared.Shutdown() })
	harness.Eventually(t, patient, func(context.Context) error {
		if s := c.Snapshot(); s.Counts.Syncs == 0 || len(s.InFlight) > 0 {
			return errors.New("has not looked yet")
		}
		return nil
	})
	remain(t, client, "denied", "ended", "failed", "issued", "pending", "unissued")
	// The clock goes on until these are gone, as far as that.
	gone := func(limit time.Duration, names ...string) {
		t.Helper()
		harness.Eventually(t, patient, func(ctx context.Context) error {
			for _, name := range names {
				if _, err := client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					if clock.Since(now) < limit {
						clock.Step(5 * time.Minute)
					}
					return errors.Join(err, fmt.Errorf("%s is still there after %s", name, clock.Since(now)))
				}
			}
			return nil
		})
	}
	gone(23*time.Hour, "denied", "ended", "failed", "issued")
	remain(t, client, "pending", "unissued")
	gone(50*time.Hour, "pending", "unissued")
	if after := clock.Since(now); after < 24*time.Hour {
		t.Errorf("the pending and the unissued one went after %s", after)
	}
}
