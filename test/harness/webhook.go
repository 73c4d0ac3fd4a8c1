package harness

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// Refusal is what a webhook refuses to controllers.
type Refusal struct {
	// Operation is create, update or delete.
	Operation string
	// Resources are plurals.
	Resources []string
	// Code is the answer's HTTP status.
	Code int32
	// Namespace is where it is refused, besides objects without a namespace.
	Namespace string
}

// Webhook is an admission webhook that refuses what controllers do in one
// namespace, and to objects without one, and counts it.
type Webhook struct {
	name   string
	client kubernetes.Interface
	server *httptest.Server
	code   int32

	mu      sync.Mutex
	refused map[refusedObject]int
}

type refusedObject struct{ resource, namespace, name string }

// WebhookMessage is what a refusal says.
const WebhookMessage = "not now"

// StartWebhook returns when the API server asks the webhook of this name.
func StartWebhook(ctx context.Context, admin *rest.Config, name string, refuse Refusal) (*Webhook, error) {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, fmt.Errorf("make the admin client: %w", err)
	}
	w := &Webhook{name: name, client: client, code: refuse.Code, refused: map[refusedObject]int{}}
	w.server = httptest.NewTLSServer(http.HandlerFunc(w.refuse))
	if err := w.register(ctx, refuse); err != nil {
		return nil, errors.Join(err, w.Stop(ctx))
	}
	if err := w.asked(ctx, admin, refuse.Namespace); err != nil {
		return nil, errors.Join(err, w.Stop(ctx))
	}
	return w, nil
}

// refuse refuses whatever it is asked for.
func (w *Webhook) refuse(rw http.ResponseWriter, req *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(rw, "not an admission review", http.StatusBadRequest)
		return
	}
	w.count(review.Request)
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: w.code, Message: WebhookMessage}}
	review.Request = nil
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(review)
}

// count notes what is refused. A deletion of many names no object, but shows each.
func (w *Webhook) count(asked *admissionv1.AdmissionRequest) {
	name := asked.Name
	if name == "" {
		var object metav1.PartialObjectMetadata
		if json.Unmarshal(asked.OldObject.Raw, &object) == nil {
			name = object.Name
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused[refusedObject{asked.Resource.Resource, asked.Namespace, name}]++
}

// Refused is how often the webhook has refused something to objects of the
// resource in the namespace, by the object's name.
func (w *Webhook) Refused(resource, namespace string) map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[string]int{}
	for object, n := range w.refused {
		if object.resource == resource && object.namespace == namespace {
			counts[object.name] += n
		}
	}
	return counts
}

// controllers are the service accounts of the controllers, and the process, as
// which one of them works.
const controllers = `(request.userInfo.username.startsWith("system:serviceaccount:kube-system:") || request.userInfo.username == "system:kube-controller-manager")`

// probed is the resource whose creation, in a dry run, shows that the webhook is asked.
const probed = "serviceaccounts"

func (w *Webhook) register(ctx context.Context, refuse Refusal) error {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw})
	hook := func(name, condition, operation string, resources ...string) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{
			Name:                    name,
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &w.server.URL, CABundle: ca},
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: refuse.Namespace}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "controllers", Expression: condition + controllers}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationType(strings.ToUpper(operation))},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: resources},
			}},
		}
	}
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			hook("refusal.story.test", "", refuse.Operation, refuse.Resources...),
			hook("probe.story.test", "request.dryRun && ", "create", probed),
		},
	}
	if _, err := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, config, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("register the webhook: %w", err)
	}
	return nil
}

// asked waits until the API server heeds the webhook: it shows in a dry run of
// what a controller might do.
func (w *Webhook) asked(ctx context.Context, admin *rest.Config, namespace string) error {
	as := rest.CopyConfig(admin)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:generic-garbage-collector", Groups: []string{"system:masters"}}
	client, err := kubernetes.NewForConfig(as)
	if err != nil {
		return fmt.Errorf("make the client of a controller: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}
	return WaitFor(ctx, 30*time.Second, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), WebhookMessage) {
			return fmt.Errorf("the webhook is not asked yet: %w", err)
		}
		return nil
	})
}

// Stop takes the webhook away.
func (w *Webhook) Stop(ctx context.Context) error {
	defer w.server.Close()
	err := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, w.name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take the webhook away: %w", err)
	}
	return nil
}
