package services

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
)

type set = map[string]string

func service(name string, selector set, change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ServiceSpec{Selector: selector}}
	for _, f := range change {
		f(s)
	}
	return s
}

func elsewhere(s *corev1.Service)    { s.Namespace = "elsewhere" }
func externalName(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }

func pod(labels set, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "1", Labels: labels}}
	p.Status.PodIP = "10.0.0.1"
	p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}}
	for _, f := range change {
		f(p)
	}
	return p
}

func ready(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}
func ending(p *corev1.Pod)    { p.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time} }
func failed(p *corev1.Pod)    { p.Status.Phase = corev1.PodFailed }
func replaced(p *corev1.Pod)  { p.UID = "2" }
func noAddress(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil }
func newAddress(p *corev1.Pod) {
	p.Status.PodIP, p.Status.PodIPs = "10.0.0.2", []corev1.PodIP{{IP: "10.0.0.2"}}
}
func noted(p *corev1.Pod) { p.Annotations = set{"note": "x"}; p.ResourceVersion = "2" }

func indexOf(t testing.TB, services ...*corev1.Service) toolscache.Indexer {
	t.Helper()
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Services().Informer()
	if err := cache.Ensure(informer, BySelector); err != nil {
		t.Fatal(err)
	}
	for _, s := range services {
		if err := informer.GetIndexer().Add(s); err != nil {
			t.Fatal(err)
		}
	}
	return informer.GetIndexer()
}

func TestTouched(t *testing.T) {
	services := indexOf(t,
		service("web", set{"app": "web"}),
		service("web-canary", set{"app": "web", "track": "canary"}),
		service("db", set{"app": "db"}),
		service("web-away", set{"app": "web"}, elsewhere),
		service("web-alias", set{"app": "web"}, externalName),
		service("by-hand", nil))
	web, canary, db := set{"app": "web"}, set{"app": "web", "track": "canary", "x": ""}, set{"app": "db"}
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		want          []string
	}{
		"a new pod touches every service that selects it":                   {nil, pod(canary, ready), []string{"web", "web-canary"}},
		"a pod that lacks one label of a selector is not selected":          {nil, pod(web), []string{"web"}},
		"a pod that has another value of one label is not selected":         {nil, pod(set{"app": "db", "track": "canary"}), []string{"db"}},
		"a new pod without an address touches none":                         {nil, pod(web, noAddress), nil},
		"a deleted pod touches its services":                                {pod(web), nil, []string{"-web"}},
		"a deleted pod that had finished touches none":                      {pod(web, failed), nil, nil},
		"a pod that turns ready touches its services":                       {pod(web), pod(web, ready), []string{"web"}},
		"a pod that is not ready any more leaves its services":              {pod(web, ready), pod(web), []string{"-web"}},
		"a pod that turns ready elsewhere leaves where it was":              {pod(web), pod(web, ready, newAddress), []string{"-web"}},
		"a pod that gets its address touches its services":                  {pod(web, noAddress), pod(web), []string{"web"}},
		"a pod that gets another address touches its services":              {pod(web), pod(web, newAddress), []string{"-web"}},
		"a pod that begins to shut down touches its services":               {pod(web, ready), pod(web, ready, ending), []string{"-web"}},
		"a pod that goes on shutting down touches none":                     {pod(web, ending), pod(web, ending, noted), nil},
		"a pod that fails without ever having been ready touches services":  {pod(web), pod(web, failed), []string{"-web"}},
		"a pod of the same name in its place touches its services":          {pod(web), pod(web, replaced), []string{"-web"}},
		"an annotation touches none":                                        {pod(web, ready), pod(web, ready, noted), nil},
		"a changed label touches only services that select it newly":        {pod(web), pod(canary), []string{"web-canary"}},
		"a pod that moves over touches the old and the new service":         {pod(web), pod(db), []string{"db", "-web"}},
		"a label and readiness together touch services of both states":      {pod(canary), pod(web, ready), []string{"web", "-web-canary"}},
		"a label no service selects by touches none":                        {pod(web), pod(set{"app": "web", "hash": "7"}), nil},
		"a pod that no service selects touches none":                        {nil, pod(set{"job": "x"}, ready), nil},
		"a pod without labels touches none":                                 {nil, pod(nil, ready), nil},
		"a relabelled pod that has finished touches the services it was in": {pod(web), pod(db, failed), []string{"-web"}},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := Touched(services, tc.before, tc.after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, key := range keys {
				if key.Namespace != "shop" {
					t.Errorf("touched %s of another namespace", key)
				}
				if key.Leaves {
					key.Name = "-" + key.Name
				}
				got = append(got, key.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTellingPairIsTheOneThatFewestShare(t *testing.T) {
	for name, tc := range map[string]struct {
		selector set
		want     string
	}{
		"the name of a replica tells more than that of its app": {set{"app": "db", "statefulset.kubernetes.io/pod-name": "db-17"}, "statefulset.kubernetes.io/pod-name"},
		"the first key where the values are as long":            {set{"b": "xx", "a": "yy", "c": "zz"}, "a"},
		"an empty value is a value":                             {set{"only": ""}, "only"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 30 { // the labels come in any order
				if got, _ := rarePair(tc.selector); got != tc.want {
					t.Fatalf("got %s, want %s", got, tc.want)
				}
			}
		})
	}
}

func TestTouchedNamesAMissingIndex(t *testing.T) {
	if _, err := Touched(toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil), nil, pod(set{"app": "web"})); err == nil {
		t.Error("a missing index went unnoticed")
	}
}

func BenchmarkTouched(b *testing.B) {
	for _, count := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("services=%d", count), func(b *testing.B) {
			all := make([]*corev1.Service, count)
			for i := range all {
				all[i] = service(fmt.Sprintf("s-%d", i), set{"app": "shop", "part": fmt.Sprintf("part-%d", i)})
			}
			index := indexOf(b, all...)
			labels := set{"app": "shop", "part": "part-7", "pod-template-hash": "5f6d"}
			before, after := pod(labels), pod(labels, ready)
			want := []Touch{{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "s-7"}}}
			for b.Loop() {
				if got, err := Touched(index, before, after); err != nil || len(got) != len(want) || got[0] != want[0] {
					b.Fatalf("touched %v, %v", got, err)
				}
			}
		})
	}
}
