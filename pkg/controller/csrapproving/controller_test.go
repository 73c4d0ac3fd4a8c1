package csrapproving

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/certs"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

const (
	kubelet = certificatesv1.KubeAPIServerClientKubeletSignerName
	nodeA   = "O=system:nodes CN=system:node:a "
	usages  = "digital signature,key encipherment,client auth"
)

func request(t testing.TB, user, words, usages string, conditions ...certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	text, err := certs.Request(words)
	if err != nil {
		t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: kubelet, Request: text, Username: user, UID: "7", Groups: []string{"g"},
		Extra: map[string]certificatesv1.ExtraValue{"e": {"1", "2"}},
	}}
	csr.Name = "mine"
	for usage := range strings.SplitSeq(usages, ",") {
		csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.KeyUsage(usage))
	}
	for _, kind := range conditions {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "Test"})
	}
	return csr
}

func changed(csr *certificatesv1.CertificateSigningRequest, change func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
	change(csr)
	return csr
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		csr    *certificatesv1.CertificateSigningRequest
		asks   []string
		broken bool
	}{
		"a node asks for itself":      {request(t, "system:node:a", nodeA, usages), []string{"selfnodeclient", "nodeclient"}, false},
		"a token asks for a new node": {request(t, "system:bootstrap:x", nodeA, usages), []string{"nodeclient"}, false},
		"a node asks for another one": {request(t, "system:node:b", nodeA, usages), []string{"nodeclient"}, false},
		"key encipherment may be missing": {
			request(t, "system:bootstrap:x", nodeA, "client auth,digital signature"), []string{"nodeclient"}, false},
		"one that has failed is still judged, as in the reference": {
			request(t, "system:bootstrap:x", nodeA, usages, certificatesv1.CertificateFailed), []string{"nodeclient"}, false},
		"approved": {request(t, "x", nodeA, usages, certificatesv1.CertificateApproved), nil, false},
		"denied":   {request(t, "x", nodeA, usages, certificatesv1.CertificateDenied), nil, false},
		"it has its certificate": {changed(request(t, "x", nodeA, usages),
			func(c *certificatesv1.CertificateSigningRequest) { c.Status.Certificate = []byte("x") }), nil, false},
		"for kubelets' serving certificates": {changed(request(t, "x", nodeA, usages),
			func(c *certificatesv1.CertificateSigningRequest) {
				c.Spec.SignerName = certificatesv1.KubeletServingSignerName
			}), nil, false},
		"for somebody else's signer": {changed(request(t, "x", nodeA, usages),
			func(c *certificatesv1.CertificateSigningRequest) { c.Spec.SignerName = "example.com/kubelet" }), nil, false},
		"names of hosts":        {request(t, "x", nodeA+"DNS=a", usages), nil, false},
		"addresses":             {request(t, "x", nodeA+"IP=10.0.0.1", usages), nil, false},
		"an e-mail address":     {request(t, "x", nodeA+"EMAIL=a@b", usages), nil, false},
		"a URI":                 {request(t, "x", nodeA+"URI=spiffe://a", usages), nil, false},
		"another organization":  {request(t, "x", "O=system:masters CN=system:node:a", usages), nil, false},
		"one organization more": {request(t, "x", nodeA+"O=system:masters", usages), nil, false},
		"not a node":            {request(t, "x", "O=system:nodes CN=jane", usages), nil, false},
		"one usage more":        {request(t, "x", nodeA, usages+",server auth"), nil, false},
		"one usage less":        {request(t, "x", nodeA, "client auth"), nil, false},
		"it cannot be read": {changed(request(t, "x", nodeA, usages),
			func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Request = []byte("x") }), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			do := plan(tc.csr, time.Time{})
			var asks []string
			for p := do; len(p.Stages) > 0; {
				// The answer is no.
				question := p.Stages[0].Steps[0].(act.Ask).Question
				asks = append(asks, question.(*authorizationv1.SubjectAccessReview).Spec.ResourceAttributes.Subresource)
				p = p.Then(act.Results{{Became: act.Done, Object: question}})
			}
			if !slices.Equal(asks, tc.asks) || (do.Terminal != nil) != tc.broken || do.Why == "" {
				t.Errorf("got %+v, want %v", do, tc.asks)
			}
		})
	}
}

// bench is a controller whose access reviews say what allowed says.
func bench(t *testing.T, csr *certificatesv1.CertificateSigningRequest, allowed ...string) (*Controller, *fake.Clientset, *[]authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	client := fake.NewClientset(csr)
	var asked []authorizationv1.SubjectAccessReviewSpec
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		asked = append(asked, review.Spec)
		review.Status.Allowed = slices.Contains(allowed, review.Spec.ResourceAttributes.Subresource)
		return true, review, nil
	})
	informer := informers.NewSharedInformerFactory(client, 0).Certificates().V1().CertificateSigningRequests()
	c, err := New(informer, fixture.Hand(client, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := informer.Informer().GetStore().Add(csr); err != nil {
		t.Fatal(err)
	}
	return c, client, &asked
}

func TestApproval(t *testing.T) {
	for name, tc := range map[string]struct {
		user    string
		allowed []string
		asked   []string
		message string
		err     string
	}{
		"for itself": {"system:node:a", []string{"selfnodeclient"}, []string{"selfnodeclient"},
			"Auto approving self kubelet client certificate after SubjectAccessReview.", ""},
		"for itself, allowed for any node": {"system:node:a", []string{"nodeclient"}, []string{"selfnodeclient", "nodeclient"},
			"Auto approving kubelet client certificate after SubjectAccessReview.", ""},
		"for a new node": {"system:bootstrap:x", []string{"nodeclient", "selfnodeclient"}, []string{"nodeclient"},
			"Auto approving kubelet client certificate after SubjectAccessReview.", ""},
		"refused": {"system:bootstrap:x", []string{"selfnodeclient"}, []string{"nodeclient"}, "",
			`recognized csr "mine" as [nodeclient] but subject access review was not approved`},
		"refused for itself": {"system:node:a", nil, []string{"selfnodeclient", "nodeclient"}, "",
			`recognized csr "mine" as [selfnodeclient nodeclient] but subject access review was not approved`},
	} {
		t.Run(name, func(t *testing.T) {
			c, client, asked := bench(t, request(t, tc.user, nodeA, usages, "Other"), tc.allowed...)
			err := c.Reconcile(t.Context(), "mine").Err()
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || err.Error() != tc.err) {
				t.Errorf("got error %v, want %q", err, tc.err)
			}
			var subresources []string
			for _, spec := range *asked {
				subresources = append(subresources, spec.ResourceAttributes.Subresource)
			}
			if !slices.Equal(subresources, tc.asked) {
				t.Errorf("asked for %v, want %v", subresources, tc.asked)
			}
			live, err := client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "mine", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			want := []certificatesv1.CertificateSigningRequestCondition{{Type: "Other", Status: "True", Reason: "Test"}}
			if tc.message != "" {
				want = append(want, certificatesv1.CertificateSigningRequestCondition{Type: "Approved", Status: "True", Reason: "AutoApproved", Message: tc.message})
			}
			if diff := cmp.Diff(want, live.Status.Conditions); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheReviewIsOfTheRequestorAsItWas(t *testing.T) {
	c, _, asked := bench(t, request(t, "system:bootstrap:x", nodeA, usages))
	_ = c.Reconcile(t.Context(), "mine")
	want := []authorizationv1.SubjectAccessReviewSpec{{
		User: "system:bootstrap:x", UID: "7", Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{"e": {"1", "2"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: "certificates.k8s.io", Version: "*", Resource: "certificatesigningrequests", Subresource: "nodeclient"},
	}}
	if diff := cmp.Diff(want, *asked); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsOfRequests(t *testing.T) {
	broken := errors.New("connection refused")
	for name, tc := range map[string]struct {
		verb, resource string
		err            error
		fail           bool
	}{
		"a review that fails is retried":         {"create", "subjectaccessreviews", broken, true},
		"an approval that fails is retried":      {"update", "certificatesigningrequests", broken, true},
		"so is a conflict":                       {"update", "certificatesigningrequests", apierrors.NewConflict(certificates.Resource, "mine", broken), true},
		"a request that is gone needs no answer": {"update", "certificatesigningrequests", apierrors.NewNotFound(certificates.Resource, "mine"), false},
	} {
		t.Run(name, func(t *testing.T) {
			c, client, _ := bench(t, request(t, "system:bootstrap:x", nodeA, usages), "nodeclient")
			client.PrependReactor(tc.verb, tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			got := c.Reconcile(t.Context(), "mine").Err()
			if (got != nil) != tc.fail || tc.fail && !errors.Is(got, tc.err) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestARequestThatIsGoneNeedsNothing(t *testing.T) {
	c, client, _ := bench(t, request(t, "system:bootstrap:x", nodeA, usages), "nodeclient")
	if err := c.Reconcile(t.Context(), "other").Err(); err != nil || len(client.Actions()) > 0 {
		t.Errorf("got %v and sent %v", err, client.Actions())
	}
}
