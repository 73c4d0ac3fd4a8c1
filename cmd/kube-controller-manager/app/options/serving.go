package options

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
)

// checkServing reports what is wrong with the flags of the secure port, of who
// may ask there, and of what they may read. Without a port, none of them is used.
func (o *KubeControllerManagerOptions) checkServing(p *problems) {
	p.add(o.SecureServing.Validate()...)
	p.add(o.Authentication.Validate()...)
	p.add(o.Authorization.Validate()...)
	if n := o.SecureServing.HTTP2MaxStreamsPerConnection; n < 0 {
		p.addf("http2-max-streams-per-connection must not be negative, but got %d", n)
	}
	p.notNegative("authentication-token-webhook-cache-ttl", o.Authentication.CacheTTL)
	p.notNegative("authorization-webhook-cache-authorized-ttl", o.Authorization.AllowCacheTTL)
	p.notNegative("authorization-webhook-cache-unauthorized-ttl", o.Authorization.DenyCacheTTL)
	if o.SecureServing.BindPort == 0 {
		return
	}
	o.checkCertificates(p)
	o.checkTLS(p)
	o.checkAuthentication(p)
	o.checkAuthorization(p)
}

func (o *KubeControllerManagerOptions) checkCertificates(p *problems) {
	files := o.SecureServing.ServerCert.CertKey
	flags := fmt.Sprintf("--tls-cert-file=%s --tls-private-key-file=%s", files.CertFile, files.KeyFile)
	switch {
	case files.CertFile == "" && files.KeyFile == "":
	case files.CertFile == "" || files.KeyFile == "":
		p.addf("%s: missing filename for serving cert", flags)
	default:
		if _, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile); err != nil {
			p.addf("%s: %w", flags, err)
		}
	}
	for _, sni := range o.SecureServing.SNICertKeys {
		if _, err := tls.LoadX509KeyPair(sni.CertFile, sni.KeyFile); err != nil {
			p.addf("--tls-sni-cert-key=%s,%s: failed to load SNI cert and key: %w", sni.CertFile, sni.KeyFile, err)
		}
	}
}

func (o *KubeControllerManagerOptions) checkTLS(p *problems) {
	s := o.SecureServing
	least, err := cliflag.TLSVersion(s.MinTLSVersion)
	p.with("tls-min-version", s.MinTLSVersion, err)
	_, err = cliflag.TLSCurvePreferences(s.CurvePreferences)
	p.with("tls-curve-preferences", s.CurvePreferences, err)
	suites, err := cliflag.TLSCipherSuites(s.CipherSuites)
	p.with("tls-cipher-suites", s.CipherSuites, err)
	if err != nil || len(suites) == 0 || s.DisableHTTP2Serving || least >= tls.VersionTLS13 {
		return
	}
	if !slices.Contains(suites, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256) &&
		!slices.Contains(suites, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256) {
		p.with("tls-cipher-suites", s.CipherSuites, errors.New("error configuring http2: http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher "+
			"(need at least one of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)"))
	}
}

func (o *KubeControllerManagerOptions) checkAuthentication(p *problems) {
	a := o.Authentication
	if _, err := delegated(a.RemoteKubeConfigFile); err != nil {
		p.with("authentication-kubeconfig", a.RemoteKubeConfigFile, fmt.Errorf("failed to get delegated authentication kubeconfig: %w", err))
	}
	if file := a.ClientCert.ClientCA; file != "" {
		if err := holdsCABundle("client-ca-bundle", file); err != nil {
			p.with("client-ca-file", file, fmt.Errorf("unable to load client CA provider: %w", err))
		}
	}
	if file := a.RequestHeader.ClientCAFile; file != "" {
		if err := holdsCABundle("request-header", file); err != nil {
			p.with("requestheader-client-ca-file", file, fmt.Errorf("unable to create request header authentication config: %w", err))
		}
	}
}

func (o *KubeControllerManagerOptions) checkAuthorization(p *problems) {
	a := o.Authorization
	if _, err := delegated(a.RemoteKubeConfigFile); err != nil {
		p.with("authorization-kubeconfig", a.RemoteKubeConfigFile, fmt.Errorf("failed to get delegated authorization kubeconfig: %w", err))
	}
	_, err := path.NewAuthorizer(a.AlwaysAllowPaths)
	p.with("authorization-always-allow-paths", a.AlwaysAllowPaths, err)
}

// delegated reads the kubeconfig of the API server that is asked who asks and
// what they may do. Without a file there is nothing to read.
func delegated(file string) (*rest.Config, error) {
	if file == "" {
		return nil, nil
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
}
