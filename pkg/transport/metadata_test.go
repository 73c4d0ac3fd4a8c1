package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	protobufMedia = runtime.ContentTypeProtobuf
	jsonMedia     = runtime.ContentTypeJSON
)

var objects = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

func init() { utilruntime.Must(metav1.AddMetaToScheme(scheme.Scheme)) }

// encoded is the object as the API server answers with it.
func encoded(t testing.TB, object runtime.Object) []byte {
	t.Helper()
	gvks, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(gvks[0])
	var raw bytes.Buffer
	if err := objects.Encode(object, &raw); err != nil {
		t.Fatal(err)
	}
	return raw.Bytes()
}

func usualPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop", UID: "4a1f", ResourceVersion: "7", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
	}
}

// request is what a server was asked.
type request struct {
	verb, accept string
	body         runtime.Object
}

// asking returns a client of a server that answers every request so, and the last request.
func asking(t *testing.T, config rest.Config, status int, media string, answer []byte) (client.Client, *request) {
	t.Helper()
	last := &request{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		*last = request{verb: req.Method + " " + req.URL.RequestURI(), accept: req.Header.Get("Accept")}
		if last.body, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	config.Host = server.URL
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	whole, err := client.New(&config, client.Options{Scheme: scheme.Scheme, Mapper: mapper, HTTPClient: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := PodMetadata(whole, &config, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return c, last
}

func inJSON(t *testing.T, object any) []byte {
	t.Helper()
	b, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// drafted is a pod that is to be made.
func drafted() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Namespace: "shop"}, Spec: usualPod().Spec}
}

// TestOfAPodThatIsMadeTheMetadataIsAskedFor holds that any form of the answer tells what is
// recorded of the write: name, UID and version.
func TestOfAPodThatIsMadeTheMetadataIsAskedFor(t *testing.T) {
	partial := meta.AsPartialObjectMetadata(usualPod())
	whole := usualPod()
	whole.ManagedFields = nil // they are no JSON
	whole.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	partialJSON := meta.AsPartialObjectMetadata(whole)
	partialJSON.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	for name, tc := range map[string]struct {
		content rest.ContentConfig
		accept  string
		media   string
		answer  []byte
	}{
		"metadata comes back":            {accept: protobufMedia + metadataOnly + "," + protobufMedia + ",*/*", media: protobufMedia, answer: encoded(t, partial)},
		"the whole pod comes back":       {accept: protobufMedia + metadataOnly + "," + protobufMedia + ",*/*", media: protobufMedia, answer: encoded(t, usualPod())},
		"the whole pod, in JSON":         {accept: protobufMedia + metadataOnly + "," + protobufMedia + ",*/*", media: jsonMedia, answer: inJSON(t, whole)},
		"the flags say JSON":             {rest.ContentConfig{ContentType: jsonMedia}, jsonMedia + metadataOnly + "," + jsonMedia + ",*/*", jsonMedia, inJSON(t, partialJSON)},
		"the flags say what is accepted": {rest.ContentConfig{AcceptContentTypes: jsonMedia + ";q=0.9," + protobufMedia, ContentType: protobufMedia}, jsonMedia + metadataOnly + "," + jsonMedia + ";q=0.9," + protobufMedia, jsonMedia, inJSON(t, partialJSON)},
	} {
		t.Run(name, func(t *testing.T) {
			c, asked := asking(t, rest.Config{ContentConfig: tc.content}, http.StatusCreated, tc.media, tc.answer)
			pod := drafted()
			if err := c.Create(context.Background(), pod); err != nil {
				t.Fatal(err)
			}
			if pod.Name != "web-1" || pod.UID != "4a1f" || pod.ResourceVersion != "7" || len(pod.Spec.Containers) != 0 {
				t.Errorf("made %+v", pod)
			}
			sent, is := asked.body.(*corev1.Pod)
			if asked.verb != "POST /api/v1/namespaces/shop/pods" || asked.accept != tc.accept || !is || sent.GenerateName != "web-" || sent.Spec.Containers[0].Image != "web:1" {
				t.Errorf("asked %+v", asked)
			}
		})
	}
}

func TestACreationIsRefusedAsEver(t *testing.T) {
	exists := apierrors.NewAlreadyExists(corev1.Resource("pods"), "web-1").Status()
	for name, tc := range map[string]struct {
		status int
		answer any
		is     func(error) bool
	}{
		"it exists": {http.StatusConflict, &exists, apierrors.IsAlreadyExists},
		"a status":  {http.StatusCreated, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, func(err error) bool { return strings.Contains(fmt.Sprint(err), "*v1.Status") }},
		"no kind":   {http.StatusCreated, struct{}{}, func(err error) bool { return runtime.IsMissingKind(err) }},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := asking(t, rest.Config{}, tc.status, jsonMedia, inJSON(t, tc.answer))
			if err := c.Create(context.Background(), drafted()); !tc.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOfAPodThatIsDeletedTheMetadataIsAskedFor(t *testing.T) {
	uid := usualPod().UID
	options := &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	for name, tc := range map[string]struct {
		status int
		answer []byte
		is     func(error) bool
	}{
		"it goes":       {http.StatusOK, encoded(t, meta.AsPartialObjectMetadata(usualPod())), func(err error) bool { return err == nil }},
		"it is gone":    {http.StatusOK, encoded(t, &metav1.Status{Status: metav1.StatusSuccess}), func(err error) bool { return err == nil }},
		"there is none": {http.StatusNotFound, encoded(t, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404}), apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			c, asked := asking(t, rest.Config{}, tc.status, protobufMedia, tc.answer)
			if err := c.Delete(context.Background(), usualPod(), options); !tc.is(err) {
				t.Errorf("got %v", err)
			}
			sent, is := asked.body.(*metav1.DeleteOptions)
			if asked.verb != "DELETE /api/v1/namespaces/shop/pods/web-1" || !strings.Contains(asked.accept, metadataOnly) || !is || *sent.Preconditions.UID != uid {
				t.Errorf("asked %+v", asked)
			}
		})
	}
}

func TestADryRunOfAPodIsOne(t *testing.T) {
	c, asked := asking(t, rest.Config{}, http.StatusCreated, protobufMedia, encoded(t, meta.AsPartialObjectMetadata(usualPod())))
	if err := client.NewDryRunClient(c).Create(context.Background(), drafted()); err != nil || asked.verb != "POST /api/v1/namespaces/shop/pods?dryRun=All" {
		t.Errorf("%v, asked %s", err, asked.verb)
	}
}

func TestAnythingElseIsAskedForWhole(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "shop"}, Data: map[string][]byte{"k": []byte("v")}}
	c, asked := asking(t, rest.Config{}, http.StatusOK, protobufMedia, encoded(t, secret.DeepCopy()))
	made := &corev1.Secret{ObjectMeta: secret.ObjectMeta}
	if err := c.Create(context.Background(), made); err != nil || strings.Contains(asked.accept, metadataOnly) || string(made.Data["k"]) != "v" {
		t.Errorf("%v, asked %+v, made %+v", err, asked, made)
	}
	if err := c.Delete(context.Background(), secret); err != nil || strings.Contains(asked.accept, metadataOnly) {
		t.Errorf("%v, asked %+v", err, asked)
	}
}
