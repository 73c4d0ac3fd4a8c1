package csrcleaner

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

const (
	approved = certificatesv1.CertificateApproved
	denied   = certificatesv1.CertificateDenied
	failed   = certificatesv1.CertificateFailed
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func certificate(t testing.TB, end time.Time) []byte {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: noon.Add(-48 * time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

type option func(*certificatesv1.CertificateSigningRequest)

// made returns a request of that age.
func made(name string, age time.Duration, options ...option) *certificatesv1.CertificateSigningRequest {
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: "uid", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(noon.Add(-age))}}
	for _, o := range options {
		o(csr)
	}
	return csr
}

func condition(kind certificatesv1.RequestConditionType, age time.Duration) option {
	return func(csr *certificatesv1.CertificateSigningRequest) {
		c := certificatesv1.CertificateSigningRequestCondition{Type: kind}
		if age != unset {
			c.LastUpdateTime = metav1.NewTime(noon.Add(-age))
		}
		csr.Status.Conditions = append(csr.Status.Conditions, c)
	}
}

// unset is the age of a condition without a time.
const unset = -time.Second

func issued(text []byte) option {
	return func(csr *certificatesv1.CertificateSigningRequest) { csr.Status.Certificate = text }
}

func TestPast(t *testing.T) {
	valid, ended, endsNow := certificate(t, noon.Add(time.Hour)), certificate(t, noon.Add(-time.Second)), certificate(t, noon)
	const day, hour = 24 * time.Hour, time.Hour
	for name, tc := range map[string]struct {
		csr  *certificatesv1.CertificateSigningRequest
		want string
	}{
		"pending for a day":                  {made("a", day), ""},
		"pending for more":                   {made("a", day+time.Second), "it was neither approved nor denied for a day"},
		"a creation time that is missing":    {&certificatesv1.CertificateSigningRequest{}, ""},
		"made in the future":                 {made("a", -day), ""},
		"denied for an hour":                 {made("a", day, condition(denied, hour)), ""},
		"denied for more":                    {made("a", 2*hour, condition(denied, hour+time.Second)), "it was denied an hour ago"},
		"denied at a time that is missing":   {made("a", 9*day, condition(denied, unset)), ""},
		"failed for an hour":                 {made("a", day, condition(failed, hour)), ""},
		"failed for more":                    {made("a", 2*hour, condition(failed, hour+time.Second)), "it failed an hour ago"},
		"approved just now, failed long ago": {made("a", day, condition(approved, 0), condition(failed, 2*hour)), "it failed an hour ago"},
		"issued, approved an hour ago":       {made("a", day, condition(approved, hour), issued(valid)), ""},
		"issued, approved longer ago": {made("a", day, condition(approved, hour+time.Second), issued(valid)),
			"it was approved an hour ago and has its certificate"},
		"approved for a day and never issued":  {made("a", 9*day, condition(approved, day)), ""},
		"approved for more and never issued":   {made("a", 9*day, condition(approved, day+time.Second)), "it was approved a day ago and never issued"},
		"never issued, approved at no time":    {made("a", 9*day, condition(approved, unset)), ""},
		"old, but approved just now":           {made("a", 9*day, condition(approved, time.Minute)), ""},
		"never issued, and failed just now":    {made("a", 9*day, condition(failed, 0), condition(approved, 2*day)), "it was approved a day ago and never issued"},
		"a condition that nobody knows":        {made("a", 9*day, condition("Other", 9*day)), ""},
		"its certificate has ended":            {made("a", 2*hour, condition(approved, 0), issued(ended)), "its certificate has expired"},
		"its certificate ends now":             {made("a", 2*hour, condition(approved, 0), issued(endsNow)), ""},
		"ended, but never approved":            {made("a", 2*hour, issued(ended)), ""},
		"a certificate that cannot be read":    {made("a", 2*hour, condition(approved, 0), issued([]byte("x"))), ""},
		"a block that cannot be read":          {made("a", 2*hour, condition(approved, 0), issued(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))), ""},
		"an empty block":                       {made("a", 2*hour, condition(approved, 0), issued(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE"}))), ""},
		"the first of several certificates":    {made("a", 2*hour, condition(approved, 0), issued(append(append([]byte{}, valid...), ended...))), ""},
		"judged long ago at a time in between": {made("a", 9*day, condition(denied, 59*time.Minute)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := past(tc.csr, noon); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAPlanExplainsOnlySome(t *testing.T) {
	var all []*certificatesv1.CertificateSigningRequest
	for range 2 * maxExplained {
		all = append(all, made("a", 48*time.Hour))
	}
	do := plan(all, noon)
	if n := strings.Count(do.Why, "a: it was neither approved nor denied"); n != maxExplained || len(do.Stages[0].Steps) != 2*maxExplained || !strings.HasPrefix(do.Why, "100 of 100 requests") {
		t.Errorf("%d removals, %d explained: %s", len(do.Stages[0].Steps), n, do.Why)
	}
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		all        []*certificatesv1.CertificateSigningRequest
		wants, why string
	}{
		"none at all":  {nil, "", "none of 0 requests is old enough to be deleted"},
		"none is past": {[]*certificatesv1.CertificateSigningRequest{made("a", time.Hour)}, "", "none of 1 requests is old enough to be deleted"},
		"in the order of names": {[]*certificatesv1.CertificateSigningRequest{made("c", 48*time.Hour), made("b", time.Hour), made("a", 48*time.Hour)},
			"delete CertificateSigningRequest a unchanged, delete CertificateSigningRequest c unchanged",
			"2 of 3 requests are old enough to be deleted: a: it was neither approved nor denied for a day, c: it was neither approved nor denied for a day"},
	} {
		t.Run(name, func(t *testing.T) {
			if p := plan(tc.all, noon); fixture.Planned(p) != tc.wants || p.Why != tc.why || p.RequeueAfter != time.Hour {
				t.Errorf("wants %s because %q, again after %s", fixture.Planned(p), p.Why, p.RequeueAfter)
			}
		})
	}
}

// FuzzExpired looks for certificates on which the controller panics.
func FuzzExpired(f *testing.F) {
	block, _ := pem.Decode(certificate(f, noon))
	f.Add(block.Bytes)
	f.Add([]byte{0x30, 0x80})
	f.Fuzz(func(_ *testing.T, der []byte) {
		_ = expired(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), noon)
		_ = expired(der, noon)
	})
}
