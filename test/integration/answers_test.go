package integration

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// answers notes what the API server answered last.
type answers struct {
	next http.RoundTripper
	last []byte
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	a.last, err = io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(a.last))
	return response, err
}

// The API server answers writes of pods with the metadata when it is asked to, and with
// errors as ever.
func TestWritesOfPodsAreAnsweredWithMetadata(t *testing.T) {
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	config := rest.CopyConfig(cp.Admin)
	config.ContentType = runtime.ContentTypeProtobuf
	said := &answers{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { said.next = next; return said })
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := client.New(config, client.Options{Scheme: scheme.Scheme, HTTPClient: connections})
	if err != nil {
		t.Fatal(err)
	}
	c, err := transport.PodMetadata(whole, config, connections)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	meta := metav1.ObjectMeta{Namespace: "default", Name: "runner"}
	if err := c.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "web-"},
		Spec:       corev1.PodSpec{ServiceAccountName: "runner", Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}
	again := pod.DeepCopy()
	partial := func(step string) {
		t.Helper()
		if !bytes.Contains(said.last, []byte("PartialObjectMetadata")) || bytes.Contains(said.last, []byte("web:1")) {
			t.Errorf("%s: answered with %q", step, said.last)
		}
	}
	if err := c.Create(ctx, pod); err != nil || len(pod.Name) <= len("web-") || pod.UID == "" || pod.ResourceVersion == "" {
		t.Fatalf("made %+v, %v", pod, err)
	}
	partial("create")
	again.Name = pod.Name
	if err := c.Create(ctx, again); !apierrors.IsAlreadyExists(err) {
		t.Errorf("made twice: %v", err)
	}
	other := pod.UID + "x"
	if err := c.Delete(ctx, pod, client.Preconditions{UID: &other}); !apierrors.IsConflict(err) {
		t.Errorf("another pod was deleted: %v", err)
	}
	if err := c.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); err != nil {
		t.Fatal(err)
	}
	partial("delete")
	if err := c.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); !apierrors.IsNotFound(err) {
		t.Errorf("deleted twice: %v", err)
	}
}
