package scenarios

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

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
