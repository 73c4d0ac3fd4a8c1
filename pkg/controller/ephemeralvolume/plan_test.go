package ephemeralvolume

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// pod is one with these generic ephemeral volumes, and one that is a claim's.
func pod(volumes ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "web-uid"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	for _, name := range volumes {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"tier": name}, Annotations: map[string]string{"why": name}},
				Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")},
			}}}})
	}
	return p
}

func leaving(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: noon}
	return p
}

func ended(p *corev1.Pod) *corev1.Pod {
	p.Status.Phase = corev1.PodSucceeded
	return p
}

// claim is one that the pod with this UID controls, or nobody.
func claim(name string, owner types.UID) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "7"}}
	if owner != "" {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: owner, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
	}
	return c
}

func deleted(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	c.DeletionTimestamp = &metav1.Time{Time: noon}
	return c
}

func TestPlan(t *testing.T) {
	const one, two = "create PersistentVolumeClaim web-one", "create PersistentVolumeClaim web-two"
	const foreign = "tell Pod web, wait for PersistentVolumeClaim web-one"
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		claims []*corev1.PersistentVolumeClaim
		want   string
		why    string
	}{
		"a pod without such volumes":             {pod(), nil, "", "all its claims are there"},
		"a new pod, in the order of its volumes": {pod("two", "one"), nil, two + ", " + one, `claims that are missing: ["web-two" "web-one"], that others have: []`},
		"a pod that has them":                    {pod("one"), []*corev1.PersistentVolumeClaim{claim("web-one", "web-uid")}, "", "all its claims are there"},
		"one that is being deleted counts":       {pod("one"), []*corev1.PersistentVolumeClaim{deleted(claim("web-one", "web-uid"))}, "", "all its claims are there"},
		"one is missing":                         {pod("one", "two"), []*corev1.PersistentVolumeClaim{claim("web-one", "web-uid")}, two, `claims that are missing: ["web-two"], that others have: []`},
		"a pod that is being deleted":            {leaving(pod("one")), nil, "", "the pod is being deleted"},
		"a pod that has ended":                   {ended(pod("one")), nil, one, `claims that are missing: ["web-one"], that others have: []`},
		"a claim of nobody holds up no other":    {pod("one", "two"), []*corev1.PersistentVolumeClaim{claim("web-one", "")}, foreign + ", " + two, `claims that are missing: ["web-two"], that others have: ["web-one"]`},
		"a claim of the pod before it":           {pod("one"), []*corev1.PersistentVolumeClaim{claim("web-one", "old-uid")}, foreign, `claims that are missing: [], that others have: ["web-one"]`},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed{tc.pod, map[string]*corev1.PersistentVolumeClaim{}}
			for _, c := range tc.claims {
				o.claims[c.Name] = c
			}
			before := tc.pod.DeepCopy()
			p := plan(o, noon)
			if fixture.Planned(p) != tc.want || p.Why != tc.why {
				t.Errorf("wants %q because %q", fixture.Planned(p), p.Why)
			}
			if diff := cmp.Diff(before, tc.pod); diff != "" {
				t.Errorf("the cached pod was changed: %s", diff)
			}
		})
	}
}

func TestTheClaimIsMadeFromTheTemplate(t *testing.T) {
	step := creation(pod("one"), &pod("one").Spec.Volumes[1]).(act.Create)
	want := claim("web-one", "web-uid")
	want.UID, want.ResourceVersion = "", ""
	want.Labels, want.Annotations = map[string]string{"tier": "one"}, map[string]string{"why": "one"}
	want.Spec.StorageClassName = ptr.To("fast")
	if diff := cmp.Diff(want, step.Object); diff != "" {
		t.Error(diff)
	}
	for _, live := range []struct {
		owner types.UID
		same  bool
	}{{"web-uid", true}, {"old-uid", false}, {"", false}} {
		if step.Same(claim("web-one", live.owner)) != live.same {
			t.Errorf("takes a claim of %q for its own: %v", live.owner, !live.same)
		}
	}
}

func TestOnlyNamesThatOthersHaveAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		result act.Result
		told   int
	}{
		"another claim has it":    {act.Result{Became: act.Taken, Object: claim("web-one", "old-uid")}, 1},
		"nobody says what has it": {act.Result{Became: act.Taken}, 0},
		"it was refused":          {act.Result{Became: act.Refused, Object: claim("web-one", "old-uid")}, 0},
		"it is of another volume": {act.Result{Became: act.Taken, Object: claim("web-two", "old-uid")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if p := taken(pod("one"))(act.Results{tc.result}); len(p.Stages) != tc.told || (p.Err != nil) != (tc.told > 0) {
				t.Errorf("%d events, error %v", len(p.Stages), p.Err)
			}
		})
	}
}

func TestWhatIsCounted(t *testing.T) {
	refused := errors.New("exceeded quota")
	create := act.Create{Object: claim("web-one", "web-uid")}
	for name, tc := range map[string]struct {
		result            act.Result
		creates, failures int
	}{
		"a claim that was created":           {act.Result{Step: create, Became: act.Done}, 1, 0},
		"one that was refused":               {act.Result{Step: create, Became: act.Refused, Err: refused}, 1, 1},
		"one whose answer was lost":          {act.Result{Step: create, Became: act.Uncertain, Err: refused}, 1, 1},
		"one whose name is taken":            {act.Result{Step: create, Became: act.Taken}, 1, 1},
		"one that somebody has held back":    {act.Result{Step: create, Became: act.OnHold, Err: refused}, 0, 0},
		"one that is there already":          {act.Result{Step: create, Became: act.Existed}, 1, 0},
		"one that nobody asked for any more": {act.Result{Step: create, Became: act.NotBegun}, 0, 0},
		"an event":                           {act.Result{Step: act.Event{}, Became: act.Done}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			made, failed := 0, 0
			for _, c := range counts(act.Results{tc.result}) {
				switch c.Adds {
				case creates:
					made += int(c.Value)
				case createFailures:
					failed += int(c.Value)
				}
			}
			if made != tc.creates || failed != tc.failures {
				t.Errorf("%d requests, %d failures", made, failed)
			}
		})
	}
}
