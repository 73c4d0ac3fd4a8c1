package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-kcm/kube-controller-manager/pkg/why"
)

// largest bounds an answer that is read, in bytes.
const largest = 64 << 20

// answer is one with the bytes that it came in.
type answer struct {
	*why.Answer
	raw []byte
}

// standbyError is the answer of a manager that does not lead.
type standbyError struct{ error }

// ask finds who can answer, and asks. A leader that ceased to be one in between is looked
// for once more.
func (o *options) ask(ctx context.Context, q why.Question) (answer, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context})
	user, err := loader.ClientConfig()
	if err != nil && (o.server == "" || o.token == "") {
		return answer{}, questionError{fmt.Errorf("read the kubeconfig: %w", err)}
	}
	if q.Namespace == "" {
		if q.Namespace, _, err = loader.Namespace(); err != nil {
			q.Namespace = "default"
		}
	}
	if o.server != "" {
		return o.askAt(ctx, o.server, user, q)
	}
	client, err := kubernetes.NewForConfig(user)
	if err != nil {
		return answer{}, questionError{fmt.Errorf("read the kubeconfig: %w", err)}
	}
	got, err := o.askLeader(ctx, client, user, q)
	if errors.As(err, &standbyError{}) {
		got, err = o.askLeader(ctx, client, user, q)
	}
	return got, err
}

func (o *options) askLeader(ctx context.Context, client kubernetes.Interface, user *rest.Config, q why.Question) (answer, error) {
	leader, err := o.findLeader(ctx, client)
	if err != nil {
		return answer{}, err
	}
	way, err := forward(ctx, user, client, leader.namespace, leader.pod, o.port)
	if err != nil {
		return answer{}, fmt.Errorf("forward a port to %s: %w", leader, err)
	}
	defer way.close()
	got, err := o.askAt(ctx, way.address, user, q)
	var broken *url.Error
	if said := way.trouble(); errors.As(err, &broken) && said != "" {
		return answer{}, fmt.Errorf("ask %s: %s", leader, said)
	}
	if err != nil {
		return answer{}, fmt.Errorf("ask %s: %w", leader, err)
	}
	return got, nil
}

// askAt asks one manager.
func (o *options) askAt(ctx context.Context, address string, user *rest.Config, q why.Question) (answer, error) {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return answer{}, questionError{fmt.Errorf("--server is %q: it has to be an address such as https://127.0.0.1:10257", address)}
	}
	config := o.credentials(user, address)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return answer{}, questionError{fmt.Errorf("use the credentials: %w", err)}
	}
	defer client.CloseIdleConnections()
	values := url.Values{"kind": {q.Kind}, "namespace": {q.Namespace}, "name": {q.Name}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(config.Host, "/")+"/debug/why?"+values.Encode(), nil)
	if err != nil {
		return answer{}, fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, largest))
	if err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	return read(response, body)
}

// errTokenUnchecked ends a request that would show a token to whoever listens.
var errTokenUnchecked = errors.New("the credentials are a token, and it is not sent to a manager whose certificate is not checked: name the authority with --certificate-authority, or give a token of few rights with --token and --insecure-skip-tls-verify")

// credentials is how a manager is asked: as the user of the kubeconfig, or with the token.
// Nothing else of the kubeconfig is about the manager.
func (o *options) credentials(user *rest.Config, address string) *rest.Config {
	config := &rest.Config{}
	if o.token == "" {
		config = rest.CopyConfig(user)
		config.Impersonate = rest.ImpersonationConfig{}
		config.Proxy, config.Dial = nil, nil
		config.TLSClientConfig = rest.TLSClientConfig{CertFile: user.CertFile, CertData: user.CertData, KeyFile: user.KeyFile, KeyData: user.KeyData}
	}
	config.Host, config.BearerToken, config.UserAgent = address, config.BearerToken+o.token, "kubectl-kcm"
	config.ServerName = o.serverName
	switch {
	case o.authority != "":
		config.CAFile = o.authority
	case o.insecure:
		config.Insecure = true
	case o.server == "":
		// Most managers sign their certificate themselves, so that nobody can check it.
		config.Insecure = true
		config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return unchecked{next} }
	}
	return config
}

// unchecked sends no token to a server whose certificate is not checked.
type unchecked struct{ next http.RoundTripper }

func (u unchecked) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Authorization") != "" {
		return nil, errTokenUnchecked
	}
	return u.next.RoundTrip(req)
}

// read makes an answer of a response, or an error that says what to do.
func read(response *http.Response, body []byte) (answer, error) {
	said := strings.TrimSpace(string(body))
	switch media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); {
	case response.StatusCode == http.StatusUnauthorized:
		return answer{}, fmt.Errorf("the manager does not know these credentials: %s", said)
	case response.StatusCode == http.StatusForbidden:
		return answer{}, fmt.Errorf("not allowed to ask, the ClusterRole kcm-ask of build/rbac/why.yaml allows it: %s", said)
	case media != "application/json" && response.StatusCode == http.StatusNotFound:
		return answer{}, fmt.Errorf("the manager that was asked has no answers: it is another program, or an older version of this one")
	case media != "application/json":
		return answer{}, fmt.Errorf("the manager answers %s, in %q: %s", response.Status, media, said)
	}
	var shape struct{ APIVersion, Kind string }
	if err := json.Unmarshal(body, &shape); err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	if shape.APIVersion != why.APIVersion {
		return answer{}, fmt.Errorf("the answer has the shape %q, and this version of the plugin reads %q", shape.APIVersion, why.APIVersion)
	}
	if shape.Kind == why.ProblemKind {
		return answer{}, problemIn(body)
	}
	got := answer{&why.Answer{}, body}
	if err := json.Unmarshal(body, got.Answer); err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	return got, nil
}

func problemIn(body []byte) error {
	var p why.Problem
	if err := json.Unmarshal(body, &p); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	err := errors.New(p.Message)
	if p.Code == http.StatusServiceUnavailable {
		return standbyError{err}
	}
	return questionError{err}
}
