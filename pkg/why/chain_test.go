package why

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// loop remembers keys.
type loop map[string]runner.Known

func (l loop) Known(printed string) []runner.Known {
	if known, ok := l[printed]; ok {
		return []runner.Known{known}
	}
	return nil
}

// served is a part of what an API server has.
var served = KindsOf([]*metav1.APIResourceList{
	{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "pods", SingularName: "pod", Kind: "Pod", ShortNames: []string{"po"}, Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: "pods/status", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: "nodes", SingularName: "node", Kind: "Node", Verbs: metav1.Verbs{"get"}},
		{Name: "bindings", SingularName: "binding", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}},
	}},
	{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
		{Name: "deployments", SingularName: "deployment", Kind: "Deployment", ShortNames: []string{"deploy"}, Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: "replicasets", SingularName: "replicaset", Kind: "ReplicaSet", ShortNames: []string{"rs"}, Namespaced: true, Verbs: metav1.Verbs{"get"}},
	}},
	{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
		{Name: "deployments", SingularName: "deployment", Kind: "Deployment", Namespaced: true, Verbs: metav1.Verbs{"get"}},
	}},
})

// cached are the kinds that a test has caches of.
var cached = map[schema.GroupKind]runtime.Object{
	podKind: &corev1.Pod{}, deployments: &appsv1.Deployment{}, replicaSets: &appsv1.ReplicaSet{}, claims: &corev1.PersistentVolumeClaim{},
	volumes: &corev1.PersistentVolume{}, attachments: &storagev1.VolumeAttachment{}, devices: &resourcev1.ResourceClaim{},
	{Group: "example.com", Kind: "Deployment"}: &metav1.PartialObjectMetadata{},
}

// newWorld is a process that began to look a minute ago, with these objects and memories.
func newWorld(t *testing.T, loops map[string]loop, objects ...metav1.Object) *World {
	t.Helper()
	informers := map[schema.GroupKind]toolscache.SharedIndexInformer{}
	for kind, like := range cached {
		informers[kind] = toolscache.NewSharedIndexInformer(&toolscache.ListWatch{}, like, 0, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
		if err := cache.Ensure(informers[kind], cache.ByController); err != nil {
			t.Fatal(err)
		}
	}
	if err := cache.Ensure(informers[attachments], cache.AttachmentsByVolume); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		for kind, like := range cached {
			if reflect.TypeOf(like) != reflect.TypeOf(o) {
				continue
			}
			if err := informers[kind].GetIndexer().Add(o); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &World{
		Now:     func() time.Time { return noon },
		Process: func() Process { return Process{Leading: true, Since: noon.Add(-time.Minute)} },
		Kinds:   func() *Kinds { return served },
		Caches: func(k Kind) []Cache {
			if informer, ok := informers[k.GroupKind]; ok {
				return []Cache{{Indexer: informer.GetIndexer(), Synced: true}}
			}
			return nil
		},
		Works: func(k schema.GroupKind) []Work {
			return map[schema.GroupKind][]Work{deployments: {{Controller: "deployment-controller"}}, replicaSets: {{Controller: "replicaset-controller"}}}[k]
		},
		Running: func(name, _ string) Running {
			if name == "off" {
				return Running{Controller: debug.Controller{Name: name, State: debug.Disabled, Why: "by --controllers"}}
			}
			return Running{Controller: debug.Controller{Name: name, State: debug.Started}, Loop: loops[name]}
		},
	}
}

func meta(name string, owner metav1.Object, kind string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}
	if owner != nil {
		yes := true
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes}}
	}
	return m
}

// rollout is a Deployment of some pods, of which fewer are there, and more ready or fewer.
func rollout(want, there, ready int32) []metav1.Object {
	d := deployment(want, have(there, there, ready))
	d.ObjectMeta = meta("web", nil, "")
	set := &appsv1.ReplicaSet{ObjectMeta: meta("web-1", d, "Deployment"), Spec: appsv1.ReplicaSetSpec{Replicas: &want},
		Status: appsv1.ReplicaSetStatus{Replicas: there, ReadyReplicas: ready, AvailableReplicas: ready}}
	all := []metav1.Object{d, set}
	for n := range there {
		p := pod()
		p.ObjectMeta = meta(fmt.Sprintf("web-1-%02d", n), set, "ReplicaSet")
		if n < ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		} else {
			p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
		}
		all = append(all, p)
	}
	return all
}

func ask(t *testing.T, w *World, kind, name string) *Answer {
	t.Helper()
	a, problem := w.Ask(Question{kind, "default", name}, w.Process())
	if problem != nil {
		t.Fatal(problem.Message)
	}
	return a
}

func shape(a *Answer) string {
	var all []string
	for _, o := range a.Objects {
		all = append(all, fmt.Sprintf("%d %s %s %s", o.Depth, o.Kind, o.Name, o.Verdict))
	}
	return strings.Join(all, ", ")
}

func TestAnAnswerIsAboutWhatHoldsUpTheRest(t *testing.T) {
	quota := map[string]loop{
		"deployment-controller": {"default/web": {LastLook: noon}},
		"replicaset-controller": {"default/web-1": {Failures: 4, LastError: "create pods: exceeded quota", NextTry: noon.Add(8 * time.Second),
			Decisions: []act.Decision{{Why: "older"}, {Why: "3 pods missing of 5", Became: []string{"create Pod: refused"}}}}},
	}
	for name, tc := range map[string]struct {
		world           *World
		verdict         Verdict
		sentence, shape string
	}{
		"a quota": {newWorld(t, quota, rollout(5, 2, 2)...), Blocked,
			"Deployment default/web is blocked at ReplicaSet web-1: 2 of 5 pods exist; replicaset-controller has failed 4 times in a row, and tries again in 8s: create pods: exceeded quota.",
			"0 Deployment web progressing, 1 ReplicaSet web-1 blocked, 2 Pod web-1-00 complete, 2 Pod web-1-01 complete"},
		"all is well": {newWorld(t, nil, rollout(2, 2, 2)...), Complete,
			"Deployment default/web is complete: all 2 replicas are available and up to date.",
			"0 Deployment web complete, 1 ReplicaSet web-1 complete, 2 Pod web-1-00 complete, 2 Pod web-1-01 complete"},
		"a pod without a node": {newWorld(t, nil, rollout(2, 2, 1)...), Waiting,
			"Deployment default/web is waiting at Pod web-1-01: it waits for the scheduler to choose a node.",
			"0 Deployment web progressing, 1 ReplicaSet web-1 progressing, 2 Pod web-1-01 waiting, 2 Pod web-1-00 complete"},
		"nobody by that name": {newWorld(t, quota), Unknown,
			"Nothing certain is known of Deployment default/web: there is no such object in the cache, and this process has looked for 60s; deployment-controller remembers it.",
			"0 Deployment web unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			a := ask(t, tc.world, "deploy", "web")
			if a.Verdict != tc.verdict || a.Sentence != tc.sentence || shape(a) != tc.shape {
				t.Errorf("%s: %s\n%s\nwant %s: %s\n%s", a.Verdict, a.Sentence, shape(a), tc.verdict, tc.sentence, tc.shape)
			}
		})
	}
	set := ask(t, newWorld(t, quota, rollout(5, 2, 2)...), "rs", "web-1").Objects[1].Controllers[0]
	if set.Why != "3 pods missing of 5" || set.Failures != 4 || set.NextTry != noon.Add(8*time.Second) || set.Page != "/debug/controllers/replicaset-controller?key=default%2Fweb-1" {
		t.Errorf("the controller of the set: %+v", set)
	}
}

// TestWhatIsNotKnownIsNotSaid has controllers and caches that are not here, or not yet.
func TestWhatIsNotKnownIsNotSaid(t *testing.T) {
	away := newWorld(t, nil, rollout(2, 0, 0)...)
	works := away.Works
	away.Works = func(kind schema.GroupKind) []Work {
		if kind == deployments {
			return []Work{{Controller: "off"}}
		}
		return works(kind)
	}
	if d := ask(t, away, "deployment", "web").Objects[0]; d.Verdict != Unknown || !strings.Contains(d.Sentence, "of off: it does not run here (disabled by --controllers)") {
		t.Errorf("of a controller that is off: %s, %q", d.Verdict, d.Sentence)
	}
	late := newWorld(t, nil)
	l := &look{World: late, kinds: served, now: noon}
	if got := judgeServiceHere(l, &corev1.Service{}, nil); got.verdict != Unknown {
		t.Errorf("without a cache of slices: %+v", got)
	}
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")}}
	if got := judgeClaimHere(l, claim, nil); got.verdict != Unknown {
		t.Errorf("without a cache of classes: %+v", got)
	}
	caches := late.Caches
	if indexer := l.indexed(podKind); indexer == nil {
		t.Error("a whole cache is not read")
	}
	late.Caches = func(k Kind) []Cache {
		all := caches(k)
		for i := range all {
			all[i].Synced = false
		}
		return all
	}
	if indexer := l.indexed(podKind); indexer != nil {
		t.Error("a cache that still fills is read as if it were whole")
	}
}

func TestAPodIsEvictedByItsFirstToleration(t *testing.T) {
	taint := &corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	short := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](30)}
	for name, tc := range map[string]struct {
		first, second corev1.Toleration
		want          *int64
	}{"without an end": {everything, short, nil}, "for a while": {short, everything, short.TolerationSeconds}} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{tc.first, tc.second}}}
		if got, tolerated := tolerance(pod, taint); !tolerated || !ptr.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v", name, got, tolerated)
		}
	}
}

func TestAPodIsAskedForWithItsOwners(t *testing.T) {
	a := ask(t, newWorld(t, nil, rollout(5, 2, 2)...), "Pod", "web-1-00")
	if want := "-2 Deployment web progressing, -1 ReplicaSet web-1 progressing, 0 Pod web-1-00 complete"; shape(a) != want {
		t.Errorf("got %s\nwant %s", shape(a), want)
	}
	if a.Verdict != Complete || a.Objects[2].Owner == nil || *a.Objects[2].Owner != (Owner{"ReplicaSet", "web-1"}) {
		t.Errorf("verdict %s, owner %v", a.Verdict, a.Objects[2].Owner)
	}
}

func TestAnAnswerIsBoundedAndShowsTheWorst(t *testing.T) {
	a := ask(t, newWorld(t, nil, rollout(50, 50, 48)...), "deployments.apps", "web")
	if len(a.Objects) != 2+widest || a.Objects[2].Verdict != Waiting || a.Objects[3].Verdict != Waiting || a.Objects[4].Verdict != Complete {
		t.Errorf("%d objects: %s", len(a.Objects), shape(a))
	}
	if want := (LeftOut{Owner{"ReplicaSet", "web-1"}, "Pod", 50 - widest, Complete}); !slices.Equal(a.LeftOut, []LeftOut{want}) {
		t.Errorf("left out: %v", a.LeftOut)
	}
}

func TestWhatAControllerMakesOfIt(t *testing.T) {
	started := Running{Controller: debug.Controller{Name: "c", State: debug.Started}}
	for name, tc := range map[string]struct {
		running Running
		known   *runner.Known
		verdict Verdict
		says    string
	}{
		"it does not run":  {Running{Controller: debug.Controller{State: debug.Disabled, Why: "by --controllers"}}, nil, Unknown, ""},
		"it knows nothing": {started, nil, Unknown, ""},
		"all is well":      {started, &runner.Known{}, Complete, ""},
		"it is at work":    {started, &runner.Known{InFlightSince: noon}, Progressing, ""},
		"it writes":        {started, &runner.Known{Decisions: []act.Decision{{Became: []string{"under way"}}}}, Progressing, ""},
		"it waits":         {started, &runner.Known{WaitingFor: []string{"pods at 7"}}, Waiting, "c waits for its caches: pods at 7"},
		"it failed once":   {started, &runner.Known{Failures: 1, LastError: "no"}, Blocked, "c has failed once, and tries again now: no"},
		"it gave up":       {started, &runner.Known{LastError: "bad", GaveUp: true}, Blocked, "c has failed, and does not try again until the object changes: bad"},
		"it is paused":     {Running{Controller: started.Controller, Paused: "c is paused by jane"}, &runner.Known{LastError: "no"}, Paused, "c is paused by jane"},
		"its write is":     {started, &runner.Known{Paused: "namespace b is paused"}, Paused, "namespace b is paused"},
		"it is held back":  {started, &runner.Known{Braked: "60 a minute"}, Waiting, "c waits for its turn: 60 a minute"},
		"paused, and new":  {Running{Controller: started.Controller, Paused: "c is paused by jane"}, nil, Paused, "c is paused by jane"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Work{Controller: "c"}.view(Reference{Name: "a"}, tc.running, tc.known, noon.Add(-time.Hour), noon)
			if c.Verdict != tc.verdict || c.trouble(noon) != tc.says {
				t.Errorf("%s: %q", c.Verdict, c.trouble(noon))
			}
		})
	}
}

func TestKindsAreFoundAsUsersWriteThem(t *testing.T) {
	for word, want := range map[string]string{
		"Deployment": "Deployment.apps", "deployment": "Deployment.apps", "deployments": "Deployment.apps", "deploy": "Deployment.apps",
		"DEPLOY": "Deployment.apps", "deployments.apps": "Deployment.apps", "deployments.v1.apps": "Deployment.apps",
		"deployment.example.com": "Deployment.example.com", "po": "Pod", "nodes": "Node", "binding": "", "pods/status": "", "": "", "deploy.batch": "",
	} {
		kind, ok := served.Find(word)
		if got := kind.GroupKind.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s, %t, want %q", word, got, ok, want)
		}
	}
	if names := strings.Join(served.Names(), " "); names != "Deployment Node Pod ReplicaSet Deployment.example.com" {
		t.Errorf("kinds: %s", names)
	}
}

func TestBadQuestions(t *testing.T) {
	w := newWorld(t, nil)
	for question, want := range map[string]struct {
		code int
		says string
	}{
		"":                                  {400, `parameter \"kind\" is missing; parameter \"name\" is missing: ask with ?kind=`},
		"kind=pod&namespace=a&name=b&key=c": {400, `unknown parameter \"key\"`},
		"kind=pod&kind=node&name=a":         {400, `parameter \"kind\" is given 2 times`},
		"kind=pod&name=b":                   {400, `parameter \"namespace\" is missing: Pod is in a namespace`},
		"kind=gizmo&namespace=a&name=b":     {404, `the API server serves no kind \"gizmo\"`},
		"kind=gizmos.example.com&name=b":    {404, `"Deployment.example.com"`},
		"kind=pod&namespace=default&name=web-nowhere": {200, `"verdict": "unknown"`},
		"kind=node&namespace=ignored&name=a":          {200, `no controller that runs here keeps objects of its kind in a cache`},
	} {
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/debug/why?"+question, nil))
		if rec.Code != want.code || !strings.Contains(rec.Body.String(), want.says) || !json.Valid(rec.Body.Bytes()) {
			t.Errorf("%s: %d %s", question, rec.Code, rec.Body)
		}
	}
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/debug/why?kind=pod", nil))
	if rec.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST is answered with %d", rec.Code)
	}
}
