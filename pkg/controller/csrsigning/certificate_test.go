package csrsigning

import (
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
	"github.com/kube-kcm/kube-controller-manager/test/certs"
)

const year = 365 * 24 * time.Hour

func TestLifetimes(t *testing.T) {
	for name, tc := range map[string]struct {
		asked      int32
		most       time.Duration
		end        time.Duration
		begin, run time.Duration // since noon
	}{
		"nothing asked for is the longest":          {0, year, 2 * year, -5 * time.Minute, year - 5*time.Minute},
		"a short one lives for all that was asked":  {3600, year, 2 * year, -5 * time.Minute, time.Hour},
		"less than ten minutes is ten minutes":      {599, year, 2 * year, -5 * time.Minute, 10 * time.Minute},
		"a second more is a second more":            {601, year, 2 * year, -5 * time.Minute, 601 * time.Second},
		"less than nothing is ten minutes":          {-5, year, 2 * year, -5 * time.Minute, 10 * time.Minute},
		"just under eight hours is short":           {28799, year, 2 * year, -5 * time.Minute, 28799 * time.Second},
		"from eight hours on the backdate counts":   {28800, year, 2 * year, -5 * time.Minute, 8*time.Hour - 5*time.Minute},
		"more than the flag allows is what it does": {1 << 30, 2 * time.Hour, year, -5 * time.Minute, 2 * time.Hour},
		"a flag under ten minutes wins":             {3600, time.Minute, year, -5 * time.Minute, time.Minute},
		"though not when just that is asked for":    {60, time.Minute, year, -5 * time.Minute, 10 * time.Minute},
		"never beyond the authority's end":          {3600, year, 30 * time.Minute, -5 * time.Minute, 30 * time.Minute},
		"nor when nothing was asked for":            {0, year, time.Hour, -5 * time.Minute, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			csr := request(t, apiClient, "CN=jane", plainClient)
			if tc.asked != 0 {
				csr.Spec.ExpirationSeconds = &tc.asked
			}
			certificate := signed(t, csr, tc.most, noon.Add(tc.end))
			if got := certificate.NotBefore.Sub(noon); got != tc.begin {
				t.Errorf("begins %s after noon, want %s", got, tc.begin)
			}
			if got := certificate.NotAfter.Sub(noon); got != tc.run {
				t.Errorf("ends %s after noon, want %s", got, tc.run)
			}
		})
	}
}

func signed(t *testing.T, csr *certificatesv1.CertificateSigningRequest, most time.Duration, end time.Time) *x509.Certificate {
	t.Helper()
	authority := authorityOf(t, newAuthority(t, "authority", end))
	parsed, err := certificates.ParseRequest(csr.Spec.Request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := sign(authority, parsed, &csr.Spec, most, noon)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := certs.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := certificate.CheckSignatureFrom(authority.Certificate); err != nil {
		t.Error(err)
	}
	return certificate
}

// TestWhatIsTakenOver compares with what the reference signs.
func TestWhatIsTakenOver(t *testing.T) {
	for name, tc := range map[string]struct {
		words, usages string
		want          map[string]any
	}{
		"a kubelet's client certificate": {node, clientUse, map[string]any{
			"subject": "CN=system:node:a,O=system:nodes", "names": "", "usages": "digital signature, key encipherment, client auth",
			"extensions": "2.5.29.15 true, 2.5.29.37 false, 2.5.29.19 true, 2.5.29.35 false"}},
		"names stay, other extensions go": {"CN=jane O=devs OU=x DNS=a EMAIL=a@b URI=spiffe://a IP=10.0.0.1 EXT=1.2.3.4 CA=true", plainClient, map[string]any{
			"subject": "CN=jane,OU=x,O=devs", "names": "DNS=a IP=10.0.0.1 EMAIL=a@b URI=spiffe://a", "usages": "client auth",
			"extensions": "2.5.29.37 false, 2.5.29.19 true, 2.5.29.35 false, 2.5.29.17 false"}},
		"every usage has its place": {"CN=jane KEY=ecdsa", "netscape sgc,microsoft sgc,ocsp signing,timestamping,ipsec user,ipsec tunnel,ipsec end system," +
			"email protection,s/mime,code signing,client auth,server auth,any,decipher only,encipher only,crl sign,cert sign,key agreement,data encipherment,key encipherment,content commitment,signing,digital signature", map[string]any{
			"subject": "CN=jane", "names": "", "key": "ECDSA",
			"usages": "digital signature, content commitment, key encipherment, data encipherment, key agreement, cert sign, crl sign, encipher only, decipher only, " +
				"any, server auth, client auth, code signing, email protection, ipsec end system, ipsec tunnel, ipsec user, timestamping, ocsp signing, microsoft sgc, netscape sgc",
			"extensions": "2.5.29.15 true, 2.5.29.37 false, 2.5.29.19 true, 2.5.29.35 false"}},
	} {
		t.Run(name, func(t *testing.T) {
			csr := request(t, apiClient, tc.words, tc.usages)
			parsed, err := certificates.ParseRequest(csr.Spec.Request)
			if err != nil {
				t.Fatal(err)
			}
			text, err := sign(authorityOf(t, newAuthority(t, "authority", noon.Add(2*year))), parsed, &csr.Spec, time.Hour, noon)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"issuer": "CN=authority", "lifetime": "1h5m0s", "ca": "false", "key": "Ed25519", "signed": "ECDSA-SHA256", "issuerKey": "true", "version": "3"}
			for key, value := range tc.want {
				want[key] = value
			}
			got, err := certs.Describe(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSerialNumbersAreLongAndNeverTheSame(t *testing.T) {
	csr := request(t, apiClient, "CN=jane", plainClient)
	seen := map[string]bool{}
	for range 50 {
		serial := signed(t, csr, time.Hour, noon.Add(year)).SerialNumber
		if serial.Sign() <= 0 || serial.BitLen() > 128 || serial.BitLen() < 64 || seen[serial.String()] {
			t.Errorf("serial number %s", serial)
		}
		seen[serial.String()] = true
	}
}

func TestWhatIsNotSigned(t *testing.T) {
	for name, tc := range map[string]struct {
		words, usages string
		end           time.Time
		never         bool
		message       string
	}{
		"an authority that has expired may be replaced": {"CN=jane", plainClient, noon.Add(-time.Second), false,
			"refusing to sign a certificate that expired in the past: NotAfter=2026-11-21 11:59:59 +0000 UTC"},
		"a spoiled signature is for ever": {"CN=jane BROKEN=signature", plainClient, noon.Add(year), true,
			"the request cannot be signed: unable to verify certificate request signature: x509: Ed25519 verification failure"},
		"so are usages that nobody knows": {"CN=jane", "client auth,flying,diving", noon.Add(year), true,
			`the request cannot be signed: unrecognized usage values: ["flying" "diving"]`},
	} {
		t.Run(name, func(t *testing.T) {
			csr := request(t, LegacyUnknown, tc.words, tc.usages)
			parsed, err := certificates.ParseRequest(csr.Spec.Request)
			if err != nil {
				t.Fatal(err)
			}
			_, err = sign(authorityOf(t, newAuthority(t, "authority", tc.end)), parsed, &csr.Spec, time.Hour, noon)
			if err == nil || err.Error() != tc.message || errors.Is(err, errRequest) != tc.never {
				t.Errorf("got %v", err)
			}
		})
	}
}
