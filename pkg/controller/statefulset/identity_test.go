package statefulset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestParents(t *testing.T) {
	for name, want := range map[string]struct {
		of      string
		ordinal int
		ok      bool
	}{
		"web-0": {"web", 0, true}, "w-0": {"w", 0, true}, "web-12": {"web", 12, true}, "a-b-3": {"a-b", 3, true}, "data-web-2147483647": {"data-web", 2147483647, true},
		"web": {}, "web-": {}, "-1": {}, "web-01": {}, "web-+1": {}, "web-x": {}, "web-2147483648": {}, "web--1": {"web-", 1, true}, "": {},
	} {
		of, ordinal, ok := parent(name)
		if of != want.of || ordinal != want.ordinal || ok != want.ok {
			t.Errorf("%q: got %q, %d, %v", name, of, ordinal, ok)
		}
	}
}

func FuzzParent(f *testing.F) {
	f.Add("web-0")
	f.Add("web-99999999999999999999")
	f.Fuzz(func(t *testing.T, name string) {
		of, ordinal, ok := parent(name)
		if ok && (ordinal < 0 || podName(of, ordinal) != name) {
			t.Errorf("%q is %q with %d", name, of, ordinal)
		}
	})
}

func TestANewPodHasItsIdentity(t *testing.T) {
	set := newSet(3, withData, starting(2))
	set.Spec.Template.Annotations = map[string]string{"a": "b"}
	set.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "scratch"}, {Name: "data"}}
	pod := newPod(set, revision{"r2", &set.Spec.Template}, 4)
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-4", GenerateName: "web-", Namespace: "ns", Annotations: map[string]string{"a": "b"},
			Labels: map[string]string{"app": "web", "controller-revision-hash": "r2",
				"statefulset.kubernetes.io/pod-name": "web-4", "apps.kubernetes.io/pod-index": "4"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "set",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}},
		Spec: corev1.PodSpec{Hostname: "web-4", Subdomain: "svc", Containers: []corev1.Container{{Name: "c", Image: "v2"}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-4"}}},
				{Name: "scratch"}}},
	}
	same(t, pod, want)
	if len(set.Spec.Template.Labels) != 1 || len(set.Spec.Template.Spec.Volumes) != 2 {
		t.Error("the template was changed")
	}
}

func TestANewClaimIsTheSets(t *testing.T) {
	set := newSet(1, withData, retaining(del, del))
	set.Spec.VolumeClaimTemplates[0].Labels = map[string]string{"tier": "gold", "app": "other"}
	claim := newClaim(set, &set.Spec.VolumeClaimTemplates[0], 7)
	same(t, claim.ObjectMeta, metav1.ObjectMeta{Name: "data-web-7", Namespace: "ns", Labels: map[string]string{"tier": "gold", "app": "web"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, kind)}})
	same(t, set.Spec.VolumeClaimTemplates[0].Labels, map[string]string{"tier": "gold", "app": "other"})
}

func TestOfTwoClaimTemplatesWithOneNameTheLastIsUsed(t *testing.T) {
	set := newSet(1, withData, withMore)
	gold := map[string]string{"tier": "gold"}
	set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: gold}})
	p := decide(look(set, nil), noon)
	same(t, told(p), []string{"create web-0 at r2 claim data-web-0 claim more-web-0"})
	made := p.stages[0][0]
	same(t, made.claims[0].Labels, map[string]string{"tier": "gold", "app": "web"})
	same(t, len(made.pod.Spec.Volumes), 2)
}

func TestARepairIsTargeted(t *testing.T) {
	const (
		labels  = `"labels":{"apps.kubernetes.io/pod-index":"0","statefulset.kubernetes.io/pod-name":"web-0"},`
		volumes = `,"spec":{"volumes":[{"$retainKeys":["name","persistentVolumeClaim"],"name":"data","persistentVolumeClaim":{"claimName":"data-web-0"}}]}`
	)
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"both":         {newTestPod(0, nameless), `{"metadata":{` + labels + `"uid":"uweb-0"}` + volumes + `}`},
		"labels alone": {newTestPod(0, nameless, mounts("data", "data-web-0")), `{"metadata":{` + labels + `"uid":"uweb-0"}}`},
		"volume alone": {newTestPod(0), `{"metadata":{"uid":"uweb-0"}` + volumes + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, string(look(newSet(1, withData), nil).repaired(step{pod: tc.pod}, 0).patch()), tc.want)
		})
	}
}

// TestWhoOwnsAClaim goes through the policies, for a pod in its place and for
// one that is scaled away, and through what a claim may have had before.
func TestWhoOwnsAClaim(t *testing.T) {
	set, pod := newSet(1), newTestPod(0)
	bySet, byPod := *metav1.NewControllerRef(set, kind), *metav1.NewControllerRef(pod, podKind)
	away := newTestPod(5)
	byAway := *metav1.NewControllerRef(away, podKind)
	loose := bySet
	loose.Controller = nil
	friend := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "f", UID: "f"}
	boss := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "b", UID: "b", Controller: ptr.To(true)}
	former := bySet
	former.UID = "former"
	formerPod := byPod
	formerPod.UID, formerPod.Controller = "former", nil
	namesake := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: set.Name, UID: "d"}
	type refs = []metav1.OwnerReference
	for name, tc := range map[string]struct {
		deleted, scaled appsv1.PersistentVolumeClaimRetentionPolicyType
		pod             *corev1.Pod
		has             refs
		fine            bool
		want            refs
	}{
		"kept, without":                  {keeps, keeps, pod, nil, true, nil},
		"kept, with the set":             {keeps, keeps, pod, refs{friend, bySet}, false, refs{friend}},
		"kept, with the pod":             {keeps, keeps, pod, refs{byPod}, false, nil},
		"kept, with a boss":              {keeps, keeps, pod, refs{boss}, true, nil},
		"with the set, without":          {del, keeps, pod, refs{friend}, false, refs{friend, bySet}},
		"with the set, as it is":         {del, keeps, pod, refs{bySet}, true, nil},
		"with the set, with the pod too": {del, keeps, pod, refs{bySet, byPod}, false, refs{bySet}},
		"with the set, as no controller": {del, keeps, pod, refs{loose}, false, refs{bySet}},
		"with the set, scaled away":      {del, keeps, away, refs{bySet}, true, nil},
		"with the set, before the pod":   {del, keeps, nil, nil, false, refs{bySet}},
		"with the pod, in its place":     {keeps, del, pod, refs{bySet}, false, nil},
		"with the pod, scaled away":      {keeps, del, away, nil, false, refs{byAway}},
		"with the pod, as it is":         {keeps, del, away, refs{byAway}, true, nil},
		"with both, in its place":        {del, del, pod, refs{byPod}, false, refs{bySet}},
		"with both, scaled away":         {del, del, away, refs{bySet}, false, refs{byAway}},
		"a boss keeps it":                {del, del, pod, refs{boss}, true, nil},
		"a boss keeps it, without us":    {del, del, pod, refs{boss, bySet}, false, refs{boss}},
		"a former set keeps it":          {del, keeps, pod, refs{former}, true, nil},
		"a former pod keeps it":          {del, keeps, pod, refs{formerPod}, true, nil},
		"a namesake does not":            {del, keeps, pod, refs{namesake}, false, refs{namesake, bySet}},
	} {
		t.Run(name, func(t *testing.T) {
			got, fine := owned(newTestClaim(0, tc.has...), newSet(1, retaining(tc.deleted, tc.scaled)), tc.pod)
			if fine != tc.fine {
				t.Errorf("fine: %v", fine)
			}
			same(t, got, tc.want)
		})
	}
	if _, fine := owned(newTestClaim(0), newSet(1), pod); !fine {
		t.Error("without a policy claims stay")
	}
}
