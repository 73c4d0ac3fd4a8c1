package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"sigs.k8s.io/randfill"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

var (
	objects = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	events  = protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme)
)

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

// event is the frame in which the API server sends the object.
func event(t testing.TB, object runtime.Object) []byte {
	t.Helper()
	var frame bytes.Buffer
	if err := events.Encode(&metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: encoded(t, object)}}, &frame); err != nil {
		t.Fatal(err)
	}
	return frame.Bytes()
}

func decode(t testing.TB, frame []byte) runtime.Object {
	t.Helper()
	e := &metav1.WatchEvent{}
	if err := e.Unmarshal(frame); err != nil {
		t.Fatal(err)
	}
	object, _, err := objects.Decode(e.Object.Raw, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func trimmed(t testing.TB, object runtime.Object) any {
	t.Helper()
	trimmed, err := cache.Trim(object)
	if err != nil {
		t.Fatal(err)
	}
	return trimmed
}

func TestACacheHoldsTheSameWithAndWithout(t *testing.T) {
	for _, kind := range []runtime.Object{&corev1.Pod{}, &corev1.Node{}, &corev1.Service{}, &discoveryv1.EndpointSlice{}, &resourcev1.ResourceSlice{}, &metav1.Status{}, &metav1.PartialObjectMetadata{}} {
		t.Run(fmt.Sprintf("%T", kind), func(t *testing.T) {
			for seed := range testworld.Seeds(t, 200) {
				object := kind.DeepCopyObject()
				randfill.NewWithSeed(int64(seed)).NilChance(0.3).NumElements(0, 3).Funcs(
					func(r *metav1.FieldsV1, c randfill.Continue) { r.SetRawBytes([]byte(c.String(0))) },
					func(s *intstr.IntOrString, c randfill.Continue) { *s = intstr.FromString(c.String(0)) },
				).Fill(object)
				frame := event(t, object)
				short := Event(nil, frame)
				if want, got := trimmed(t, decode(t, frame)), trimmed(t, decode(t, short)); !equality.Semantic.DeepEqual(want, got) {
					t.Fatalf("seed %d: shortened and trimmed\n%+v\nwant as from the whole\n%+v", seed, got, want)
				}
			}
		})
	}
}

func usualPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", Namespace: "shop", UID: "4a1f", ResourceVersion: "7", Labels: map[string]string{"app": "web"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat(`{"f:status":{}}`, 60))}},
		},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{
			Name: "web", Image: "web:1", Command: []string{"serve"}, Env: []corev1.EnvVar{{Name: "MODE", Value: "x"}},
			Ports:         []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Ready: true, ContainerID: "containerd://1"}}},
	}
}

func TestWhatNoCacheKeepsIsNotDecoded(t *testing.T) {
	frame := event(t, usualPod())
	short := Event(nil, frame)
	if len(short) > len(frame)/2 {
		t.Errorf("%d bytes left of %d", len(short), len(frame))
	}
	pod := decode(t, short).(*corev1.Pod)
	c := pod.Spec.Containers[0]
	if pod.ManagedFields != nil || c.Env != nil || c.Command != nil || c.LivenessProbe != nil || c.Image != "" || pod.Status.ContainerStatuses[0].ContainerID != "" {
		t.Errorf("still decoded: %+v", pod)
	}
	if c.Name != "web" || c.Ports[0].ContainerPort != 80 || pod.Spec.NodeName != "n" || pod.Labels["app"] != "web" || !pod.Status.ContainerStatuses[0].Ready {
		t.Errorf("lost: %+v", pod)
	}
}

func TestEveryKindLosesItsManagedFields(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
	object, err := meta.Accessor(decode(t, Event(nil, event(t, service))))
	if err != nil {
		t.Fatal(err)
	}
	if object.GetManagedFields() != nil || object.GetName() != "s" {
		t.Errorf("got %+v", object)
	}
}

func TestANumberAboveThoseOfRulesIsInNoSet(t *testing.T) {
	all := ^fields(0)
	for n, want := range map[protowire.Number]bool{1: true, 63: true, 64: false, 65: false, 128: false, protowire.MaxValidNumber: false} {
		if got := all.has(n); got != want {
			t.Errorf("%d: %t", n, got)
		}
	}
}

func TestWhatIsNotUnderstoodIsPassedOn(t *testing.T) {
	whole := event(t, usualPod())
	for name, frame := range map[string][]byte{
		"nothing":      {},
		"JSON":         []byte(`{"type":"ADDED","object":{"kind":"Pod"}}`),
		"cut short":    whole[:len(whole)-9],
		"no magic":     bytes.Replace(whole, magic, []byte("k9s\x00"), 1),
		"only numbers": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		if got := Event([]byte("before"), frame); !bytes.Equal(got, append([]byte("before"), frame...)) {
			t.Errorf("%s: became %q", name, got)
		}
	}
}

// fixed answers every request with this body.
type fixed struct {
	contentType string
	body        io.Reader
}

func (f fixed) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Header: http.Header{"Content-Type": {f.contentType}}, Body: io.NopCloser(f.body)}, nil
}

func read(t *testing.T, contentType string, body io.Reader) ([]byte, error) {
	t.Helper()
	response, err := shorten(fixed{contentType, body}).RoundTrip(&http.Request{URL: &url.URL{Path: "/api/v1/pods"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(iotest.OneByteReader(response.Body))
}

func framed(frame []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

func TestAWatchIsShortenedFrameByFrame(t *testing.T) {
	const watch = "application/vnd.kubernetes.protobuf;stream=watch"
	pod := event(t, usualPod())
	large := usualPod()
	large.Spec.Containers[0].Args = []string{string(make([]byte, 300<<10))}
	var in, want []byte
	for _, frame := range [][]byte{pod, {}, event(t, large), pod} {
		in = append(in, framed(frame)...)
		want = append(want, framed(Event(nil, frame))...)
	}
	for name, tc := range map[string]struct {
		contentType string
		in, want    []byte
		err         error
	}{
		"whole":               {contentType: watch, in: in, want: want},
		"cut within a frame":  {contentType: watch, in: append(framed(pod), framed(pod)[:50]...), want: framed(Event(nil, pod)), err: io.ErrUnexpectedEOF},
		"cut within a length": {contentType: watch, in: append(framed(pod), 0, 0), want: append(framed(Event(nil, pod)), 0, 0)},
		"too long a frame":    {contentType: watch, in: []byte("\xff\xff\xff\xffrest"), want: []byte("\xff\xff\xff\xffrest")},
		"JSON":                {contentType: "application/json;stream=watch", in: in, want: in},
		"no watch":            {contentType: "application/vnd.kubernetes.protobuf", in: in, want: in},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, tc.contentType, iotest.HalfReader(bytes.NewReader(tc.in)))
			if !errors.Is(err, tc.err) || !bytes.Equal(got, tc.want) {
				t.Errorf("read %d bytes and %v, want %d and %v", len(got), err, len(tc.want), tc.err)
			}
		})
	}
}

func TestAnErrorBetweenTwoFramesIsPassedOn(t *testing.T) {
	pod := event(t, usualPod())
	got, err := read(t, "application/vnd.kubernetes.protobuf;stream=watch", iotest.TimeoutReader(bytes.NewReader(framed(pod))))
	if !errors.Is(err, iotest.ErrTimeout) || !bytes.Equal(got, framed(Event(nil, pod))) {
		t.Errorf("read %d bytes and %v", len(got), err)
	}
}

func TestAfterTheLongestFrameTheNextIsShortened(t *testing.T) {
	pod, longest := event(t, usualPod()), make([]byte, mostFrame)
	in := io.MultiReader(bytes.NewReader(framed(longest)), bytes.NewReader(framed(pod)))
	response, err := shorten(fixed{"application/vnd.kubernetes.protobuf;stream=watch", in}).RoundTrip(&http.Request{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	if want := append(framed(longest), framed(Event(nil, pod))...); err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes and %v, want %d", len(got), err, len(want))
	}
}

func TestABufferIsKeptUnlessItIsTooSmallOrUnusual(t *testing.T) {
	for name, tc := range map[string]struct {
		room, size int
		kept       bool
	}{
		"for less":            {8 << 10, 100, true},
		"for as much":         {8 << 10, 8 << 10, true},
		"for more":            {8 << 10, 8<<10 + 1, false},
		"usual":               {2 * usualFrame, 100, true},
		"unusual":             {2*usualFrame + 1, usualFrame, false},
		"unusual, still used": {2*usualFrame + 1, usualFrame + 1, true},
	} {
		old := make([]byte, 1, tc.room)
		got := sized(old, tc.size)
		if kept := &got[0] == &old[0]; kept != tc.kept || len(got) != tc.size {
			t.Errorf("%s: %d bytes, kept is %t", name, len(got), kept)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	frame := event(b, usualPod())
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			trimmed(b, decode(b, frame))
		}
	})
	b.Run("shortened", func(b *testing.B) {
		b.ReportAllocs()
		var short []byte
		for b.Loop() {
			short = Event(short[:0], frame)
			trimmed(b, decode(b, short))
		}
	})
}

func count(t testing.TB, of metrics.CounterMetric) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(of)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
