package scenarios

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/test/certs"
)

// withCertificate adds what the certificate in a status holds, as the field
// x509, so that stories can expect it.
func withCertificate(object unstructured.Unstructured) unstructured.Unstructured {
	encoded, _, err := unstructured.NestedString(object.Object, "status", "certificate")
	if err != nil || encoded == "" {
		return object
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return object
	}
	if held, err := certs.Describe(text); err == nil {
		object.Object["x509"] = held
	}
	return object
}

// issue does what the signer of a pod certificate request does.
func (r *run) issue(ctx context.Context, step Step) error {
	_, objects, err := r.existing(ctx, step, step.Rest)
	if err != nil {
		return err
	}
	for _, object := range objects {
		// The API server takes no certificate that begins at another time.
		status, err := issued(object, time.Now().UTC().Truncate(time.Second))
		if err != nil {
			return fmt.Errorf("issue %s: %w", object.GetName(), err)
		}
		if err := r.patchEach(ctx, step, "podcertificaterequests/"+object.GetName(), status, "status"); err != nil {
			return err
		}
	}
	return nil
}

// issued is the patch that gives a pod certificate request its certificate.
func issued(request unstructured.Unstructured, begin time.Time) ([]byte, error) {
	encoded, _, err := unstructured.NestedString(request.Object, "spec", "stubPKCS10Request")
	if err != nil {
		return nil, err
	}
	asked, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("decode what is asked for: %w", err)
	}
	end := begin.Add(2 * time.Hour)
	chain, err := certs.Issue(asked, begin, end)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"status": certificatesv1beta1.PodCertificateRequestStatus{
		CertificateChain: string(chain),
		NotBefore:        &metav1.Time{Time: begin}, BeginRefreshAt: &metav1.Time{Time: begin.Add(time.Hour)}, NotAfter: &metav1.Time{Time: end},
		Conditions: []metav1.Condition{{Type: certificatesv1beta1.PodCertificateRequestConditionTypeIssued, Status: metav1.ConditionTrue,
			Reason: "Story", LastTransitionTime: metav1.Time{Time: begin}}},
	}})
}

// createAs returns what creates objects as another user. The API server takes a
// moment to notice new role bindings.
func (r *run) createAs(user string, groups []string) func(context.Context, Step, *meta.RESTMapping, *unstructured.Unstructured) (string, error) {
	return func(ctx context.Context, step Step, mapping *meta.RESTMapping, object *unstructured.Unstructured) (string, error) {
		config := rest.CopyConfig(r.suite.cp.Admin)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return "", fmt.Errorf("make the client of %s: %w", user, err)
		}
		name := object.GetName()
		var refused error
		err = r.until(ctx, step.Within, func() (bool, string, error) {
			created, err := client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
			if apierrors.IsForbidden(err) {
				return false, "", err
			}
			if refused = err; err == nil {
				name = created.GetName()
			}
			return true, "", nil
		})
		return name, errors.Join(err, refused)
	}
}
