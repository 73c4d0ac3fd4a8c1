package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// aggregated is an API server behind that of the cluster, with one namespaced
// kind and no objects. It can go down and come back at the same address.
type aggregated struct {
	group   string
	address string
	pair    tls.Certificate
	server  *http.Server
}

const (
	apiServices     = "/apis/apiregistration.k8s.io/v1/apiservices"
	aggregatedGroup = "aggregated.example.com"
)

// addAPI starts an aggregated API and waits until the API server serves it.
func (w *world) addAPI(ctx context.Context) (*aggregated, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the aggregated API: %w", err)
	}
	a := &aggregated{group: aggregatedGroup, address: "127.0.0.1:0"}
	if a.pair, err = tls.X509KeyPair(certificate, key); err != nil {
		return nil, fmt.Errorf("read the certificate of the aggregated API: %w", err)
	}
	if err := a.up(ctx); err != nil {
		return nil, err
	}
	return a, w.registerAPI(ctx, a)
}

// registerAPI announces the API under a name that stands for this machine.
func (w *world) registerAPI(ctx context.Context, a *aggregated) error {
	_, text, _ := net.SplitHostPort(a.address)
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("read the port of the aggregated API: %w", err)
	}
	if _, err := w.Client.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "aggregated"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the Service of the aggregated API: %w", err)
	}
	service := fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.%[1]s"},
		"spec":{"group":%[1]q,"version":"v1","groupPriorityMinimum":100,"versionPriority":100,"insecureSkipTLSVerify":true,
		"service":{"name":"aggregated","namespace":"default","port":%[2]d}}}`, a.group, port)
	if err := w.Client.Discovery().RESTClient().Post().AbsPath(apiServices).SetHeader("Content-Type", "application/json").
		Body([]byte(service)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("create the APIService: %w", err)
	}
	return w.available(ctx)
}

// available waits until the API server says that it reaches the API.
func (w *world) available(ctx context.Context) error {
	return harness.WaitFor(ctx, 2*time.Minute, func(ctx context.Context) error {
		text, err := w.Client.Discovery().RESTClient().Get().AbsPath(apiServices, "v1."+aggregatedGroup).Do(ctx).Raw()
		if err != nil {
			return err
		}
		var service struct {
			Status struct{ Conditions []metav1.Condition }
		}
		if err := json.Unmarshal(text, &service); err != nil {
			return fmt.Errorf("read the APIService: %w", err)
		}
		for _, c := range service.Status.Conditions {
			if c.Type == "Available" && c.Status == metav1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the aggregated API is not available: %v", service.Status.Conditions)
	})
}

func (a *aggregated) up(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", a.address)
	if err != nil {
		return fmt.Errorf("listen for the aggregated API: %w", err)
	}
	a.address = listener.Addr().String()
	a.server = &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second, TLSConfig: &tls.Config{Certificates: []tls.Certificate{a.pair}}}
	go func() { _ = a.server.ServeTLS(listener, "", "") }()
	return nil
}

// down ends the listener and every connection.
func (a *aggregated) down() { _ = a.server.Close() }

// ServeHTTP answers discovery, lists and deletions.
func (a *aggregated) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var answer any
	switch path := request.URL.Path; {
	case path == "/apis/"+a.group+"/v1":
		answer = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: a.group + "/v1",
			APIResources: []metav1.APIResource{{Name: "gadgets", SingularName: "gadget", Kind: "Gadget", Namespaced: true,
				Verbs: metav1.Verbs{"delete", "deletecollection", "get", "list"}}}}
	case strings.HasSuffix(path, "/gadgets") && request.Method == http.MethodGet:
		answer = metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []metav1.PartialObjectMetadata{}}
	case strings.HasSuffix(path, "/gadgets") && request.Method == http.MethodDelete:
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}
	default:
		http.NotFound(w, request)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}
