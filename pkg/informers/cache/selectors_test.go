package cache_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
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

func TestMatchingFindsWhatTheSelectorMatches(t *testing.T) {
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Pods().Informer()
	if err := cache.Ensure(informer, cache.ByLabel); err != nil {
		t.Fatal(err)
	}
	for name, labels := range map[string]map[string]string{
		"ns/both": {"app": "web", "tier": "front"}, "ns/one": {"app": "web"}, "ns/bare": nil, "other/both": {"app": "web", "tier": "front"},
	} {
		namespace, name, _ := strings.Cut(name, "/")
		if err := informer.GetIndexer().Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	in := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		want     []string
	}{
		"no selector matches nothing":        {nil, nil},
		"the empty one matches everything":   {&metav1.LabelSelector{}, []string{"bare", "both", "one"}},
		"one label":                          {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, []string{"both", "one"}},
		"two labels":                         {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "tier": "front"}}, []string{"both"}},
		"a label and one that must not be":   {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}}, []string{"one"}},
		"no required label":                  {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in("tier", "front", "back")}}, []string{"both"}},
		"two values that exclude each other": {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in("app", "web"), in("app", "db")}}, nil},
		"a label that is asked for twice":    {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: []metav1.LabelSelectorRequirement{in("app", "web")}}, []string{"both", "one"}},
	} {
		t.Run(name, func(t *testing.T) {
			selector, err := metav1.LabelSelectorAsSelector(tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			found, err := cache.Matching[corev1.Pod](informer.GetIndexer(), "ns", selector)
			if got := names(found); err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("got %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestMatchingNamesAMissingIndex(t *testing.T) {
	bare := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil)
	for _, text := range []string{"app=web", "app=web,!tier", "", "!tier"} { // the last two need the index of namespaces
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := cache.Matching[corev1.Pod](bare, "ns", selector); err == nil {
			t.Errorf("a missing index went unnoticed: %q finds %v", text, found)
		}
	}
}

func TestMaySelectFindsABudgetForEverything(t *testing.T) {
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Policy().V1().PodDisruptionBudgets().Informer()
	if err := cache.Ensure(informer, cache.BySelector); err != nil {
		t.Fatal(err)
	}
	for name, selector := range map[string]*metav1.LabelSelector{
		"web": {MatchLabels: map[string]string{"app": "web"}}, "db": {MatchLabels: map[string]string{"app": "db"}}, "all": {}, "nothing": nil,
	} {
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}
		if err := informer.GetIndexer().Add(budget); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"app": "web"}}}
	found, err := cache.MaySelect[policyv1.PodDisruptionBudget](informer.GetIndexer(), pod)
	if got, want := names(found), []string{"all", "web"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestMaySelectFindsAJobForEverything(t *testing.T) {
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Batch().V1().Jobs().Informer()
	if err := cache.Ensure(informer, cache.BySelector); err != nil {
		t.Fatal(err)
	}
	for name, selector := range map[string]*metav1.LabelSelector{"all": {}, "nothing": nil} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: batchv1.JobSpec{Selector: selector}}
		if err := informer.GetIndexer().Add(job); err != nil {
			t.Fatal(err)
		}
	}
	found, err := cache.MaySelect[batchv1.Job](informer.GetIndexer(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}})
	if got := names(found); err != nil || !slices.Equal(got, []string{"all"}) {
		t.Errorf("got %v, %v", got, err)
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
