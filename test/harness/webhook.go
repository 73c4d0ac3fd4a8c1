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
}

// Webhook is an admission webhook that refuses what controllers do in one
// namespace, and to objects without one.
type Webhook struct {
	name   string
	client kubernetes.Interface
	server *httptest.Server
}

// WebhookMessage is what a refusal says.
const WebhookMessage = "not now"

// StartWebhook returns when the API server asks the webhook.
func StartWebhook(ctx context.Context, admin *rest.Config, namespace string, refuse Refusal) (*Webhook, error) {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, fmt.Errorf("make the admin client: %w", err)
	}
	w := &Webhook{name: namespace, client: client}
	w.server = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) { refuseReview(rw, req, refuse.Code) }))
	if err := w.register(ctx, namespace, refuse); err != nil {
		return nil, errors.Join(err, w.Stop(ctx))
	}
	if err := w.asked(ctx, admin, namespace, refuse); err != nil {
		return nil, errors.Join(err, w.Stop(ctx))
	}
	return w, nil
}

// refuseReview refuses whatever it is asked for.
func refuseReview(rw http.ResponseWriter, req *http.Request, code int32) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(rw, "not an admission review", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: code, Message: WebhookMessage}}
	review.Request = nil
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(review)
}

func (w *Webhook) register(ctx context.Context, namespace string, refuse Refusal) error {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw})
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "refusal.story.test",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &w.server.URL, CABundle: ca},
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "controllers", Expression: `request.userInfo.username.startsWith("system:serviceaccount:kube-system:")`}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationType(strings.ToUpper(refuse.Operation))},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"},
					Resources: append([]string{"serviceaccounts"}, refuse.Resources...)},
			}},
		}},
	}
	if _, err := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, hook, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("register the webhook: %w", err)
	}
	return nil
}

// asked waits until the API server heeds the webhook: it shows in a dry run of
// what a controller might do.
func (w *Webhook) asked(ctx context.Context, admin *rest.Config, namespace string, refuse Refusal) error {
	as := rest.CopyConfig(admin)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:generic-garbage-collector", Groups: []string{"system:masters"}}
	client, err := kubernetes.NewForConfig(as)
	if err != nil {
		return fmt.Errorf("make the client of a controller: %w", err)
	}
	accounts, dry := client.CoreV1().ServiceAccounts(namespace), []string{metav1.DryRunAll}
	return WaitFor(ctx, 30*time.Second, func(ctx context.Context) error {
		var err error
		switch refuse.Operation {
		case "create":
			_, err = accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}, metav1.CreateOptions{DryRun: dry})
		case "update":
			_, err = accounts.Patch(ctx, "default", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"probe":"x"}}}`), metav1.PatchOptions{DryRun: dry})
		default:
			err = accounts.Delete(ctx, "default", metav1.DeleteOptions{DryRun: dry})
		}
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
