package cache_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
)

func TestAdoptableFindsOrphansByTheRarestRequiredLabel(t *testing.T) {
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Pods().Informer()
	if err := cache.Ensure(informer, cache.Orphans, cache.OrphansByLabel); err != nil {
		t.Fatal(err)
	}
	put := func(name string, owned bool, labels map[string]string) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}}
		if owned {
			pod.OwnerReferences = []metav1.OwnerReference{{UID: "u", Controller: ptr.To(true)}}
		}
		if err := informer.GetIndexer().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	put("both", false, map[string]string{"app": "web", "tier": "front"})
	put("one", false, map[string]string{"app": "web"})
	put("owned", true, map[string]string{"app": "web", "tier": "front"})
	put("bare", false, nil)
	for name, tc := range map[string]struct {
		selector metav1.LabelSelector
		want     []string
	}{
		"the rarest of two labels":            {metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "tier": "front"}}, []string{"both"}},
		"a label nobody has":                  {metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "tier": "back"}}, nil},
		"one label":                           {metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, []string{"both", "one"}},
		"no required label: all the orphans":  {metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}, []string{"bare", "both", "one"}},
		"a set of one value is as one label":  {metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"front"}}}}, []string{"both"}},
		"a set of two values narrows nothing": {metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"front", "back"}}}}, []string{"bare", "both", "one"}},
	} {
		t.Run(name, func(t *testing.T) {
			selector, err := metav1.LabelSelectorAsSelector(&tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			found, err := cache.Adoptable[corev1.Pod](informer.GetIndexer(), "ns", selector)
			if got := names(found); err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("got %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestMaySelectFindsEverySetThatSelectsAPod(t *testing.T) {
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Apps().V1().ReplicaSets().Informer()
	if err := cache.Ensure(informer, cache.BySelector); err != nil {
		t.Fatal(err)
	}
	for name, selector := range map[string]*metav1.LabelSelector{
		"web":     {MatchLabels: map[string]string{"app": "web"}},
		"hashed":  {MatchLabels: map[string]string{"app": "web", "pod-template-hash": "1"}},
		"exists":  {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}},
		"other":   {MatchLabels: map[string]string{"app": "db"}},
		"nil":     nil,
		"empty":   {},
		"invalid": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}},
	} {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: appsv1.ReplicaSetSpec{Selector: selector}}
		if err := informer.GetIndexer().Add(set); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"app": "web", "pod-template-hash": "1"}}}
	found, err := cache.MaySelect[appsv1.ReplicaSet](informer.GetIndexer(), pod)
	if got, want := names(found), []string{"exists", "hashed", "web"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func names[T any](objects []*T) []string {
	var names []string
	for _, object := range objects {
		names = append(names, any(object).(metav1.Object).GetName())
	}
	slices.Sort(names)
	return names
}
