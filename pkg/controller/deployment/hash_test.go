package deployment

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// goldenHash is a template as a cluster stores it, and the name it got there.
type goldenHash struct {
	Name           string                 `json:"name"`
	Hash           string                 `json:"hash"`
	CollisionCount *int32                 `json:"collisionCount"`
	Template       corev1.PodTemplateSpec `json:"template"`
}

func goldenHashes(t *testing.T) []goldenHash {
	t.Helper()
	data, err := os.ReadFile("testdata/hashes.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []goldenHash
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestHashesAreThoseOfRunningClusters(t *testing.T) {
	for _, golden := range goldenHashes(t) {
		t.Run(golden.Name, func(t *testing.T) {
			check(t, pods.TemplateHash(&golden.Template, golden.CollisionCount), golden.Hash)
		})
	}
}

// Templates come over the wire as protobuf, and as JSON where that is configured.
func TestHashesDoNotDependOnTheEncoding(t *testing.T) {
	codec := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	for _, golden := range goldenHashes(t) {
		t.Run(golden.Name, func(t *testing.T) {
			d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: golden.Template}}
			d.SetGroupVersionKind(kind)
			wire, err := runtime.Encode(codec, d)
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := runtime.Decode(codec, wire)
			if err != nil {
				t.Fatal(err)
			}
			template := decoded.(*appsv1.Deployment).DeepCopy().Spec.Template
			check(t, pods.TemplateHash(&template, golden.CollisionCount), golden.Hash)
		})
	}
}

func TestALongNameGivesWayToTheHash(t *testing.T) {
	check(t, setName("web", "abc"), "web-abc")
	check(t, setName(strings.Repeat("a", 250)+"bcd", "f6b654b5"), strings.Repeat("a", 244)+"-f6b654b5")
}

func TestTemplatesAreComparedWithoutTheirHash(t *testing.T) {
	memory := func(size string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}
	}
	for name, tc := range map[string]struct {
		change func(*corev1.PodTemplateSpec)
		want   bool
	}{
		"the hash label is not part of the template": {func(p *corev1.PodTemplateSpec) { p.Labels = withHash(p.Labels, "x") }, true},
		"no labels are empty labels":                 {func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{} }, true},
		"another label is another template":          {func(p *corev1.PodTemplateSpec) { p.Labels["tier"] = "front" }, false},
		"another image is another template":          {func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "v2" }, false},
		"a quantity in another unit is the same":     {func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources.Limits = memory("1Ki") }, true},
		"an annotation makes a restart":              {func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"restartedAt": "noon"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := template("v1"), template("v1")
			a.Spec.Containers[0].Resources.Limits, b.Spec.Containers[0].Resources.Limits = memory("1024"), memory("1024")
			tc.change(&b)
			check(t, sameTemplate(&a, &b), tc.want)
		})
	}
}
