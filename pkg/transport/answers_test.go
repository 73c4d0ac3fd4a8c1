package transport

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const proto = "application/vnd.kubernetes.protobuf"

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

// answered is what a client reads that sends such a request and gets this answer.
func answered(t testing.TB, method, contentType string, status int, body io.Reader) ([]byte, error) {
	t.Helper()
	config := Answers(&rest.Config{})
	transport := config.WrapTransport(tripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body)}, nil
	}))
	response, err := transport.RoundTrip(&http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(iotest.OneByteReader(response.Body))
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// writtenPod is the usual pod as its writer gets it, and the share of its bytes that is read.
func writtenPod(t *testing.T, method string) (pod runtime.Object, share float64) {
	t.Helper()
	whole := encoded(t, usualPod())
	short, err := answered(t, method, proto, http.StatusOK, bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	pod, _, err = objects.Decode(short, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pod, float64(len(short)) / float64(len(whole))
}

func TestOfAPodThatIsNewOrGoneTheMetadataComesBack(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		got, _ := writtenPod(t, method)
		want := usualPod()
		want.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		want.ManagedFields, want.Spec, want.Status = nil, corev1.PodSpec{}, corev1.PodStatus{}
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", method, got, want)
		}
	}
}

// TestOfAPodThatChangedTheCachedPartComesBack holds what adoption needs: the pod that
// was patched is one of those that are counted next.
func TestOfAPodThatChangedTheCachedPartComesBack(t *testing.T) {
	for _, method := range []string{http.MethodPut, http.MethodPatch} {
		got, share := writtenPod(t, method)
		want := usualPod()
		want.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		if want, got := trimmed(t, want), trimmed(t, got); !equality.Semantic.DeepEqual(got, want) || share > 0.5 {
			t.Errorf("%s: %.2f of the bytes, got %+v, want %+v", method, share, got, want)
		}
	}
}

func TestOfAnythingElseAllComesBackButManagedFields(t *testing.T) {
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}, Count: 3, Message: "Created"}
	short, err := answered(t, http.MethodPost, proto, http.StatusCreated, bytes.NewReader(encoded(t, event)))
	if err != nil {
		t.Fatal(err)
	}
	event.ManagedFields = nil
	if want := encoded(t, event); !bytes.Equal(short, want) {
		t.Errorf("got %q, want %q", short, want)
	}
}

func TestAnswersThatAreNoObjectsArePassedOn(t *testing.T) {
	pod := encoded(t, usualPod())
	broken := errors.New("broken off")
	for name, tc := range map[string]struct {
		method, contentType string
		status              int
		in                  []byte
		err                 error
	}{
		"read":          {http.MethodGet, proto, http.StatusOK, pod, nil},
		"refused":       {http.MethodPost, proto, http.StatusConflict, pod, nil},
		"JSON":          {http.MethodPost, "application/json", http.StatusCreated, []byte("{}"), nil},
		"a stream":      {http.MethodPost, proto + ";stream=watch", http.StatusOK, pod, nil},
		"nothing":       {http.MethodDelete, proto, http.StatusOK, nil, nil},
		"no object":     {http.MethodPost, proto, http.StatusOK, []byte("x"), nil},
		"no such media": {http.MethodPost, ";", http.StatusOK, pod, nil},
		"cut short":     {http.MethodPost, proto, http.StatusCreated, pod[:len(pod)-9], broken},
	} {
		t.Run(name, func(t *testing.T) {
			body := io.Reader(bytes.NewReader(tc.in))
			if tc.err != nil {
				body = io.MultiReader(body, iotest.ErrReader(tc.err))
			}
			got, err := answered(t, tc.method, tc.contentType, tc.status, body)
			if !errors.Is(err, tc.err) || !bytes.Equal(got, tc.in) {
				t.Errorf("read %d bytes and %v, want %d and %v", len(got), err, len(tc.in), tc.err)
			}
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	whole := encoded(b, usualPod())
	for name, method := range map[string]string{"whole": http.MethodGet, "shortened": http.MethodPost} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			config := Answers(&rest.Config{})
			transport := config.WrapTransport(tripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {proto}}, Body: io.NopCloser(bytes.NewReader(whole))}, nil
			}))
			for b.Loop() {
				response, err := transport.RoundTrip(&http.Request{Method: method})
				if err != nil {
					b.Fatal(err)
				}
				body, err := io.ReadAll(response.Body)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := objects.Decode(body, nil, &corev1.Pod{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
