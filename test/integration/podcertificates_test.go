package integration

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/podcertificaterequestcleaner"
	"github.com/kube-kcm/kube-controller-manager/test/certs"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// podCertificates is a cluster in which pods may ask for certificates, and the
// cleaner of what they asked, under its own role and a clock of its own.
type podCertificates struct {
	cp        *harness.ControlPlane
	client    kubernetes.Interface
	namespace string
	clock     *testclock.FakeClock
}

// in makes a namespace for one story, whose time begins now.
func (p podCertificates) in(t *testing.T, namespace string) podCertificates {
	t.Helper()
	create(t, p.client.CoreV1().Namespaces().Create, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	p.namespace, p.clock = namespace, testclock.NewFakeClock(time.Now())
	return p
}

// clean runs a cleaner until end is called, or the test ends.
func (p podCertificates) clean(t *testing.T) (c *podcertificaterequestcleaner.Controller, end func()) {
	t.Helper()
	reader, _ := asManager(t, p.cp)
	own := podcertificaterequestcleaner.Informers(reader, 0)
	var err error
	c, err = podcertificaterequestcleaner.New(own.Certificates().V1beta1().PodCertificateRequests(),
		handOf(t, accountConfig(p.cp, "podcertificaterequestcleaner"), p.clock))
	if err != nil {
		t.Fatal(err)
	}
	scope := harness.NewScope(t)
	t.Cleanup(scope.End)
	runUntilEnd(scope, c, own)
	return c, scope.End
}

func (p podCertificates) asks(t *testing.T, name string, finalizers ...string) types.UID {
	t.Helper()
	text, err := certs.Request("KEY=ecdsa")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	made, err := p.client.CertificatesV1beta1().PodCertificateRequests(p.namespace).Create(t.Context(), &certificatesv1beta1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
		Spec: certificatesv1beta1.PodCertificateRequestSpec{
			SignerName: "example.com/signer", PodName: "pod", PodUID: "p", ServiceAccountName: "default", ServiceAccountUID: "s",
			NodeName: "node", NodeUID: "n", StubPKCS10Request: block.Bytes,
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.UID
}

func (p podCertificates) denied(t *testing.T, name string) {
	t.Helper()
	requests := p.client.CertificatesV1beta1().PodCertificateRequests(p.namespace)
	request, err := requests.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request.Status.Conditions = []metav1.Condition{{Type: certificatesv1beta1.PodCertificateRequestConditionTypeDenied, Status: metav1.ConditionTrue,
		Reason: "NotWanted", LastTransitionTime: metav1.Now()}}
	if _, err := requests.UpdateStatus(t.Context(), request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// goes waits until the request is gone, while the clock goes on.
func (p podCertificates) goes(t *testing.T, name string, tick time.Duration) {
	t.Helper()
	harness.Eventually(t, patient, func(ctx context.Context) error {
		_, err := p.client.CertificatesV1beta1().PodCertificateRequests(p.namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		p.clock.Step(tick)
		return errors.Join(err, fmt.Errorf("%s is still there at %s", name, p.clock.Now()))
	})
}

func (p podCertificates) stays(t *testing.T, name string) *certificatesv1beta1.PodCertificateRequest {
	t.Helper()
	request, err := p.client.CertificatesV1beta1().PodCertificateRequests(p.namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func TestPodCertificateRequestsAreDeletedInTime(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{APIServerArgs: []string{
		"--feature-gates=PodCertificateRequest=true", "--runtime-config=certificates.k8s.io/v1beta1=true"}})
	all := podCertificates{cp: cp, client: clientOf(t, cp)}

	t.Run("after a quarter of an hour, not before", func(t *testing.T) {
		p := all.in(t, "in-time")
		p.asks(t, "old")
		since := p.clock.Now()
		p.clean(t)
		p.goes(t, "old", 30*time.Second)
		if passed := p.clock.Since(since); passed < 15*time.Minute-2*time.Second {
			t.Errorf("it went after %s", passed)
		}
	})
	t.Run("also those that were answered", func(t *testing.T) {
		p := all.in(t, "answered")
		p.asks(t, "denied")
		p.denied(t, "denied")
		p.clock.Step(16 * time.Minute)
		p.clean(t)
		p.goes(t, "denied", 0)
	})
	t.Run("those that were asked later stay", func(t *testing.T) {
		p := all.in(t, "later")
		// To this cleaner it is ten minutes ago.
		p.clock.SetTime(time.Now().Add(-10 * time.Minute))
		p.asks(t, "later")
		p.clean(t)
		p.clock.Step(24 * time.Minute)
		p.stays(t, "later")
		p.goes(t, "later", 30*time.Second)
	})
	t.Run("one that was made again under the name stays", func(t *testing.T) {
		p := all.in(t, "again")
		first := p.asks(t, "same")
		p.clean(t)
		if err := p.client.CertificatesV1beta1().PodCertificateRequests(p.namespace).Delete(t.Context(), "same", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if second := p.asks(t, "same"); second == first {
			t.Fatal("the same request")
		}
		p.clock.Step(10 * time.Minute)
		p.stays(t, "same")
		p.goes(t, "same", time.Minute)
	})
	t.Run("one that a finalizer holds is deleted, and waited for by nobody", func(t *testing.T) {
		p := all.in(t, "held")
		p.asks(t, "held", "example.com/hold")
		p.asks(t, "other")
		p.clock.Step(16 * time.Minute)
		p.clean(t)
		p.goes(t, "other", 0)
		harness.Eventually(t, patient, func(context.Context) error {
			if p.stays(t, "held").DeletionTimestamp == nil {
				return errors.New("it was not deleted")
			}
			return nil
		})
		p.clock.Step(time.Hour)
		p.asks(t, "third")
		p.goes(t, "third", time.Minute)
		if _, err := p.client.CertificatesV1beta1().PodCertificateRequests(p.namespace).Patch(t.Context(), "held", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		p.goes(t, "held", 0)
	})
	t.Run("after a policy has refused that", func(t *testing.T) { all.in(t, "refused").whileRefused(t) })
	t.Run("by the next manager, when one ended before", func(t *testing.T) {
		p := all.in(t, "restart")
		p.asks(t, "left")
		_, end := p.clean(t)
		p.clock.Step(10 * time.Minute)
		p.stays(t, "left")
		end()
		p.clock.Step(10 * time.Minute)
		p.stays(t, "left")
		p.clean(t)
		p.goes(t, "left", 0)
	})
}

// whileRefused has a policy in the way of the deletion for a while.
func (p podCertificates) whileRefused(t *testing.T) {
	policies, bindings := p.client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), p.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	forbidden := metav1.StatusReasonForbidden
	create(t, policies.Create, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "keep"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Delete},
			Rule:       admissionv1.Rule{APIGroups: []string{"certificates.k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"podcertificaterequests"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "oldObject.metadata.namespace != '" + p.namespace + "'", Reason: &forbidden}},
	}})
	create(t, bindings.Create, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "keep"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "keep", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}})
	p.asks(t, "kept")
	requests := p.client.CertificatesV1beta1().PodCertificateRequests(p.namespace)
	harness.Eventually(t, patient, func(ctx context.Context) error {
		if err := requests.Delete(ctx, "kept", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the policy does not count yet: %w", err)
		}
		return nil
	})
	p.clock.Step(16 * time.Minute)
	c, _ := p.clean(t)
	harness.Eventually(t, patient, func(context.Context) error {
		p.clock.Step(time.Second)
		if key, _ := c.Key(p.namespace + "/kept"); key.Failures < 3 {
			return fmt.Errorf("it was tried %d times, with %q", key.Failures, key.LastError)
		}
		return nil
	})
	p.stays(t, "kept")
	if err := bindings.Delete(t.Context(), "keep", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.goes(t, "kept", time.Second)
}
