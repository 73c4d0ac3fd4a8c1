package certs

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

var usageNames = []struct {
	usage x509.KeyUsage
	name  string
}{
	{x509.KeyUsageDigitalSignature, "digital signature"}, {x509.KeyUsageContentCommitment, "content commitment"},
	{x509.KeyUsageKeyEncipherment, "key encipherment"}, {x509.KeyUsageDataEncipherment, "data encipherment"},
	{x509.KeyUsageKeyAgreement, "key agreement"}, {x509.KeyUsageCertSign, "cert sign"}, {x509.KeyUsageCRLSign, "crl sign"},
	{x509.KeyUsageEncipherOnly, "encipher only"}, {x509.KeyUsageDecipherOnly, "decipher only"},
}

var extendedNames = map[x509.ExtKeyUsage]string{
	x509.ExtKeyUsageAny: "any", x509.ExtKeyUsageServerAuth: "server auth", x509.ExtKeyUsageClientAuth: "client auth",
	x509.ExtKeyUsageCodeSigning: "code signing", x509.ExtKeyUsageEmailProtection: "email protection",
	x509.ExtKeyUsageIPSECEndSystem: "ipsec end system", x509.ExtKeyUsageIPSECTunnel: "ipsec tunnel", x509.ExtKeyUsageIPSECUser: "ipsec user",
	x509.ExtKeyUsageTimeStamping: "timestamping", x509.ExtKeyUsageOCSPSigning: "ocsp signing",
	x509.ExtKeyUsageMicrosoftServerGatedCrypto: "microsoft sgc", x509.ExtKeyUsageNetscapeServerGatedCrypto: "netscape sgc",
}

// Parse reads the one certificate of a PEM text.
func Parse(text []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("not one certificate in PEM")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read a certificate: %w", err)
	}
	return certificate, nil
}

// Describe says what a certificate in PEM holds, leaving out what no two
// certificates share: moments, serial number and signature. From a day on its
// lifetime is in whole days, since the end may be that of the authority.
func Describe(text []byte) (map[string]any, error) {
	c, err := Parse(text)
	if err != nil {
		return nil, err
	}
	lifetime := c.NotAfter.Sub(c.NotBefore)
	if lifetime >= 24*time.Hour {
		lifetime = lifetime.Round(24 * time.Hour)
	}
	fields := map[string]any{
		"subject": c.Subject.String(), "issuer": c.Issuer.String(), "lifetime": lifetime.String(),
		"usages": strings.Join(usages(c), ", "), "ca": fmt.Sprint(c.IsCA), "names": strings.Join(names(c), " "),
		"key": c.PublicKeyAlgorithm.String(), "signed": c.SignatureAlgorithm.String(),
		"issuerKey": fmt.Sprint(len(c.AuthorityKeyId) > 0), "version": fmt.Sprint(c.Version),
	}
	extensions := make([]string, 0, len(c.Extensions))
	for _, e := range c.Extensions {
		extensions = append(extensions, fmt.Sprintf("%s %t", e.Id, e.Critical))
	}
	fields["extensions"] = strings.Join(extensions, ", ")
	return fields, nil
}

func usages(c *x509.Certificate) []string {
	var all []string
	for _, u := range usageNames {
		if c.KeyUsage&u.usage != 0 {
			all = append(all, u.name)
		}
	}
	for _, u := range c.ExtKeyUsage {
		all = append(all, extendedNames[u])
	}
	return all
}

func names(c *x509.Certificate) []string {
	var all []string
	for _, name := range c.DNSNames {
		all = append(all, "DNS="+name)
	}
	for _, address := range c.IPAddresses {
		all = append(all, "IP="+address.String())
	}
	for _, address := range c.EmailAddresses {
		all = append(all, "EMAIL="+address)
	}
	for _, u := range c.URIs {
		all = append(all, "URI="+u.String())
	}
	return all
}
