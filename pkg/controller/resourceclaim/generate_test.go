package resourceclaim

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// played says what becomes of a plan when all its steps succeed, and of those that follow. The
// claims that it makes get their numbers.
func played(p act.Plan) (did string, err error) {
	var all []string
	var results act.Results
	numbers := 0
	for {
		for _, stage := range p.Stages {
			for _, step := range stage.Steps {
				words, result := taken(step, &numbers)
				all, results = append(all, words), append(results, result)
				if w, is := step.(act.WaitFor); is {
					return strings.Join(all, ", "), w.Err
				}
			}
		}
		if p.Then == nil {
			return strings.Join(all, ", "), p.Err
		}
		p = p.Then(results)
	}
}

func taken(step act.Step, numbers *int) (string, act.Result) {
	result := act.Result{Step: step, Became: act.Done}
	switch s := step.(type) {
	case act.Create:
		*numbers++
		c := s.Object.DeepCopyObject().(*resourceapi.ResourceClaim)
		c.Name = fmt.Sprint(c.GenerateName, *numbers)
		result.Object = c
		return "create " + c.Name, result
	case act.Apply:
		data, err := json.Marshal(s.Configuration)
		if err != nil {
			return err.Error(), result
		}
		var sent struct {
			Status struct {
				ResourceClaimStatuses []struct{ Name, ResourceClaimName string }
			}
		}
		if err := json.Unmarshal(data, &sent); err != nil {
			return err.Error(), result
		}
		words := "record"
		for _, e := range sent.Status.ResourceClaimStatuses {
			words += " " + e.Name + "=" + e.ResourceClaimName
		}
		return words, result
	case act.Status:
		o := s.Of.DeepCopyObject().(client.Object)
		s.Set(o)
		result.Object = o
		c := o.(*resourceapi.ResourceClaim)
		words := fmt.Sprintf("status %s allocated=%t", c.Name, c.Status.Allocation != nil)
		for _, ref := range c.Status.ReservedFor {
			words += " " + string(ref.UID)
		}
		return words, result
	case act.Update:
		return fmt.Sprintf("update %s %q", s.Object.GetName(), s.Object.GetFinalizers()), result
	case act.Event:
		return "tell " + s.Message, result
	}
	return step.Verb() + " " + step.About().GetName(), result
}

// rigged is a controller over what is cached; what is live may differ.
func rigged(t testing.TB, gated bool, live ...runtime.Object) (*fixture.Rig, *Controller) {
	t.Helper()
	rig := fixture.New(fake.NewClientset(live...), noon)
	in := Caches{
		Pods: rig.In.Core().V1().Pods(), Claims: rig.In.Resource().V1().ResourceClaims(), Templates: rig.In.Resource().V1().ResourceClaimTemplates(),
	}
	if gated {
		in.Groups = rig.In.Scheduling().V1alpha2().PodGroups()
	}
	c, err := New(in, rig.Hand(), Options{Workers: 5})
	if err != nil {
		t.Fatal(err)
	}
	return rig, c
}

// planned is what is done about a key, by what is cached and live.
func planned(t *testing.T, c *Controller, k key) (string, string, error) {
	t.Helper()
	o, err := c.observe(t.Context(), k)
	if err != nil {
		return "", "", err
	}
	p := plan(o, noon)
	did, err := played(p)
	return did, p.Why, err
}

func TestWhatAPodGets(t *testing.T) {
	first, second := strings.Repeat("c", 60)+"-0", strings.Repeat("c", 60)+"-1"
	begins := generateName("web", first)
	for name, tc := range map[string]struct {
		pod          *corev1.Pod
		cached, live []runtime.Object
		want, err    string
	}{
		"a claim from a template":      {pod: pod("gpu"), cached: []runtime.Object{template("gpu")}, want: "create web-gpu-1, record gpu=web-gpu-1"},
		"two, in the order of the pod": {pod: pod("gpu", "disk"), cached: []runtime.Object{template("gpu"), template("disk")}, want: "create web-gpu-1, create web-disk-2, record gpu=web-gpu-1 disk=web-disk-2"},
		"nothing when it has all":      {pod: recording(pod("gpu"), "gpu", "a"), cached: []runtime.Object{made("a", "gpu", "web-uid")}},
		"one that was made, and is not recorded": {pod: pod("gpu"), cached: []runtime.Object{made("a", "gpu", "web-uid"), template("gpu")},
			want: "record gpu=a"},
		"not one that was made for another of its claims": {pod: pod("gpu"), cached: []runtime.Object{made("a", "disk", "web-uid"), template("gpu")},
			want: "create web-gpu-1, record gpu=web-gpu-1"},
		"not one that an earlier pod of its name has": {pod: pod("gpu"), cached: []runtime.Object{made("a", "gpu", "old-uid"), template("gpu")},
			want: "create web-gpu-1, record gpu=web-gpu-1"},
		"of two the one that nobody deletes":             {pod: pod("gpu"), cached: []runtime.Object{leaving(made("a", "gpu", "web-uid")), made("b", "gpu", "web-uid")}, want: "record gpu=b"},
		"of two the first by name":                       {pod: pod("gpu"), cached: []runtime.Object{made("b", "gpu", "web-uid"), made("a", "gpu", "web-uid")}, want: "record gpu=a"},
		"another when its claim has lost its owner":      {pod: recording(pod("gpu"), "gpu", "a"), cached: []runtime.Object{claim("a"), template("gpu")}, want: "create web-gpu-1, record gpu=web-gpu-1"},
		"nothing when it has its node by then":           {pod: on(recording(pod("gpu"), "gpu", "a"), "n"), cached: []runtime.Object{claim("a"), template("gpu")}},
		"nor when the cache lacks that claim":            {pod: on(recording(pod("gpu"), "gpu", "a"), "n"), cached: []runtime.Object{template("gpu")}, live: []runtime.Object{claim("a")}},
		"one that was made, and has lost its annotation": {pod: pod("gpu"), cached: []runtime.Object{generated("a", "web-gpu-"), template("gpu")}, want: "record gpu=a"},
		"not one of another beginning":                   {pod: pod("gpu"), cached: []runtime.Object{generated("a", "web-disk-"), template("gpu")}, want: "create web-gpu-1, record gpu=web-gpu-1"},
		"one each, when long names begin alike":          {pod: pod(first, second), cached: []runtime.Object{generated("a", begins), generated("b", begins)}, want: "record " + first + "=a " + second + "=b"},
		"nor that of another claim": {pod: recording(pod(first, second), first, "a", second, "b"), cached: []runtime.Object{generated("a", begins), template(second)},
			want: "create " + begins + "1, record " + first + "=a " + second + "=" + begins + "1"},
		"no claim for extended resources": {pod: pod("extended-resources"), cached: []runtime.Object{forExtended(generated("a", "web-extended-resources-")), template("extended-resources")},
			want: "create web-extended-resources-1, record extended-resources=web-extended-resources-1"},
		"no claim that is not needed": {pod: recording(pod("gpu"), "gpu", ""), cached: []runtime.Object{template("gpu")}},
		"a claim again that is gone, and the others stay": {pod: recording(pod("gpu", "disk"), "gpu", "a", "disk", "b"),
			cached: []runtime.Object{made("b", "disk", "web-uid"), template("gpu")}, want: "create web-gpu-1, record gpu=web-gpu-1 disk=b"},
		"no second claim when the cache is behind": {pod: recording(pod("gpu"), "gpu", "a"), cached: []runtime.Object{template("gpu")}, live: []runtime.Object{made("a", "gpu", "web-uid")}},
		"its own in place of that of another": {pod: recording(pod("gpu"), "gpu", "a"), cached: []runtime.Object{made("a", "gpu", "old-uid"), template("gpu")},
			want: "create web-gpu-1, record gpu=web-gpu-1"},
		"its own in place of one that only lives": {pod: recording(pod("gpu"), "gpu", "a"), cached: []runtime.Object{template("gpu")}, live: []runtime.Object{made("a", "gpu", "old-uid")},
			want: "create web-gpu-1, record gpu=web-gpu-1"},
		"all entries whatever is new": {pod: recording(pod("gpu", "disk", "net"), "gpu", "a", "net", ""),
			cached: []runtime.Object{made("a", "gpu", "web-uid"), template("disk")}, want: "create web-disk-1, record gpu=a disk=web-disk-1 net="},
		"an event when there is no template": {pod: pod("gpu"),
			want: `tell PodResourceClaim gpu: resource claim template "gpu": resourceclaimtemplate.resource.k8s.io "gpu" not found, wait for web`,
			err:  `resource claim template "gpu": resourceclaimtemplate.resource.k8s.io "gpu" not found`},
		"the first claim when the second has no template, and no status": {pod: pod("gpu", "disk"), cached: []runtime.Object{template("gpu")},
			want: `create web-gpu-1, tell PodResourceClaim disk: resource claim template "disk": resourceclaimtemplate.resource.k8s.io "disk" not found, wait for web`,
			err:  `resource claim template "disk": resourceclaimtemplate.resource.k8s.io "disk" not found`},
		"nothing after one without a template": {pod: pod("disk", "gpu"), cached: []runtime.Object{template("gpu")},
			want: `tell PodResourceClaim disk: resource claim template "disk": resourceclaimtemplate.resource.k8s.io "disk" not found, wait for web`,
			err:  `resource claim template "disk": resourceclaimtemplate.resource.k8s.io "disk" not found`},
		"no prioritized list without its gate": {pod: pod("gpu"), cached: []runtime.Object{prioritized(template("gpu"))},
			want: "tell PodResourceClaim gpu: template includes a prioritized list of subrequests, but the feature is disabled, wait for web",
			err:  errPrioritizedList.Error()},
		"nothing for a claim that a user makes": {pod: naming(pod(), "mine")},
		"no claim when it is being deleted":     {pod: leaving(pod("gpu")), cached: []runtime.Object{template("gpu")}},
		"nor when it still runs then":           {pod: leaving(on(pod("gpu"), "n")), cached: []runtime.Object{template("gpu")}},
		"no claim when it has succeeded":        {pod: phase(pod("gpu"), corev1.PodSucceeded), cached: []runtime.Object{template("gpu")}},
		"no claim again when it has failed":     {pod: phase(recording(pod("gpu"), "gpu", "a"), corev1.PodFailed), cached: []runtime.Object{template("gpu")}},

		"a reservation when it has its node": {pod: on(naming(pod(), "mine"), "n"), cached: []runtime.Object{allocated(claim("mine"))},
			want: "status mine allocated=true web-uid"},
		"one beside those of others": {pod: on(naming(pod(), "mine"), "n"), cached: []runtime.Object{reserved(allocated(claim("mine")), podRef("other", "o"))},
			want: "status mine allocated=true o web-uid"},
		"one for its own claim": {pod: on(recording(pod("gpu"), "gpu", "a"), "n"), cached: []runtime.Object{allocated(made("a", "gpu", "web-uid"))},
			want: "status a allocated=true web-uid"},
		"none for that of another": {pod: on(recording(pod("gpu"), "gpu", "a"), "n"), cached: []runtime.Object{allocated(made("a", "gpu", "old-uid")), template("gpu")},
			want: "create web-gpu-1, record gpu=web-gpu-1"},
		"no reservation after the first claim that is made": {pod: naming(on(pod("gpu"), "n"), "mine"), cached: []runtime.Object{template("gpu"), allocated(claim("mine"))},
			want: "create web-gpu-1, record gpu=web-gpu-1"},
		"reservations up to the first claim that is missing": {pod: on(naming(pod(), "a", "missing", "mine"), "n"), cached: []runtime.Object{allocated(claim("a")), allocated(claim("mine"))},
			want: "status a allocated=true web-uid"},
		"one after a claim that is not allocated": {pod: on(naming(pod(), "a", "mine"), "n"), cached: []runtime.Object{claim("a"), allocated(claim("mine"))},
			want: "status mine allocated=true web-uid"},
		"one after a claim that is not needed": {pod: naming(on(recording(pod("gpu"), "gpu", ""), "n"), "mine"), cached: []runtime.Object{allocated(claim("mine"))},
			want: "status mine allocated=true web-uid"},
		"one reservation for a claim that it names twice": {pod: on(naming(pod(), "mine", "mine"), "n"), cached: []runtime.Object{allocated(claim("mine"))},
			want: "status mine allocated=true web-uid"},
		"none when it has it":                      {pod: on(naming(pod(), "mine"), "n"), cached: []runtime.Object{reserved(allocated(claim("mine")), podRef("renamed", "web-uid"))}},
		"one in place of an earlier pod of a name": {pod: on(naming(pod(), "mine"), "n"), cached: []runtime.Object{reserved(allocated(claim("mine")), podRef("web", "old"))}, want: "status mine allocated=true old web-uid"},
		"none of what is not allocated":            {pod: on(naming(pod(), "mine"), "n"), cached: []runtime.Object{claim("mine")}},
		"none of what is being deleted":            {pod: on(naming(pod(), "mine"), "n"), cached: []runtime.Object{leaving(allocated(claim("mine")))}},
		"none without a node":                      {pod: naming(pod(), "mine"), cached: []runtime.Object{allocated(claim("mine"))}},
		"none when it has ended":                   {pod: phase(on(naming(pod(), "mine"), "n"), corev1.PodSucceeded), cached: []runtime.Object{reserved(allocated(claim("mine")), podRef("other", "o"))}},
		"none when it is being deleted":            {pod: leaving(on(naming(pod(), "mine"), "n")), cached: []runtime.Object{allocated(claim("mine"))}},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t, false, tc.live...)
			rig.Cache(t, append(tc.cached, tc.pod)...)
			before := deepCopies(append(tc.cached, tc.pod))
			got, why, err := planned(t, c, keyOf(ofPod, "team", "web"))
			if got != tc.want || errorText(err) != tc.err {
				t.Errorf("does %q, fails with %v", got, err)
			}
			if why == "" {
				t.Error("does not say why")
			}
			if diff := cmp.Diff(before, append(tc.cached, tc.pod)); diff != "" {
				t.Errorf("what is cached was changed: %s", diff)
			}
		})
	}
}

// Nothing but a look at the pod shows that such a claim has gone.
func TestAClaimThatIsSeenOnlyLiveIsLookedForAgain(t *testing.T) {
	for live, again := range map[bool]time.Duration{true: lookAgain, false: 0} {
		h := holder{owner: ownerOfPod(recording(pod("gpu"), "gpu", "a")), live: map[string]bool{"a": live},
			templates: map[string]*resourceapi.ResourceClaimTemplate{"gpu": template("gpu")}}
		if got := h.complete(func() act.Plan { return act.Plan{Why: "the rest"} }).RequeueAfter; got != again {
			t.Errorf("live %t: looks again after %v", live, got)
		}
	}
}

// A webhook takes the entries off: the pod is tried again, as nothing else would wake it.
func TestEntriesThatAreNotShownAreWrittenAgain(t *testing.T) {
	h := holder{owner: ownerOfPod(pod("gpu")), owned: []*resourceapi.ResourceClaim{made("a", "gpu", "web-uid")}}
	record := h.complete(func() act.Plan { return act.Plan{Why: "the rest"} })
	for name, tc := range map[string]struct {
		answer *corev1.Pod
		fails  bool
	}{
		"shown":                   {recording(pod("gpu"), "gpu", "a"), false},
		"shown beside another":    {recording(pod("gpu"), "net", "b", "gpu", "a"), false},
		"taken off":               {pod("gpu"), true},
		"in the place of another": {recording(pod("gpu"), "gpu", "b"), true},
	} {
		after := record.Then(act.Results{{Step: record.Stages[0].Steps[0], Became: act.Done, Object: tc.answer}})
		if (after.Err != nil) != tc.fails || (after.Why == "the rest") == tc.fails {
			t.Errorf("%s: %q, %v", name, after.Why, after.Err)
		}
	}
}

// TestAClaimThatAWebhookTookTheOwnerOffIsNotRecorded holds that it is not made again with each
// change of the status.
func TestAClaimThatAWebhookTookTheOwnerOffIsNotRecorded(t *testing.T) {
	p := pod("gpu")
	h := holder{owner: ownerOfPod(p), templates: map[string]*resourceapi.ResourceClaimTemplate{"gpu": template("gpu")}}
	rest := func() act.Plan { return act.Plan{Why: "the rest"} }
	before := h.complete(rest)
	made := before.Stages[0].Steps[0]
	for name, tc := range map[string]struct {
		is    *resourceapi.ResourceClaim
		wants string
		fails bool
	}{
		"its own":         {owned(claim("a"), p.UID), "apply Pod web", false},
		"one of nobody":   {claim("a"), "tell Pod web", true},
		"one of another ": {owned(claim("a"), "other"), "tell Pod web", true},
	} {
		after := before.Then(act.Results{{Step: made, Became: act.Done, Object: tc.is}})
		if got := fixture.Planned(after); got != tc.wants || (after.Terminal != nil) != tc.fails {
			t.Errorf("%s: %q, %v", name, got, after.Terminal)
		}
	}
	two := holder{owner: ownerOfPod(pod("gpu", "disk"))}
	create := func(c *resourceapi.ResourceClaim) act.Result {
		return act.Result{Step: act.Create{Object: c}, Became: act.Done, Object: c}
	}
	if name, err := two.strange([]string{"gpu", "disk"}, act.Results{create(owned(claim("a"), p.UID)), create(claim("b"))}); name != "disk" || err == nil {
		t.Errorf("the claim without its owner is %q, %v", name, err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func deepCopies(objects []runtime.Object) []runtime.Object {
	var copies []runtime.Object
	for _, o := range objects {
		copies = append(copies, o.DeepCopyObject())
	}
	return copies
}

func TestAClaimIsMadeFromItsTemplate(t *testing.T) {
	tmpl := template("gpu")
	h := holder{owner: ownerOfPod(pod("gpu")), templates: map[string]*resourceapi.ResourceClaimTemplate{"gpu": tmpl}}
	step, err := h.creation(h.wants[0])
	if err != nil {
		t.Fatal(err)
	}
	want := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", GenerateName: "web-gpu-", Labels: map[string]string{"tier": "gpu"},
			Annotations:     map[string]string{"why": "gpu", podClaimName: "gpu"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "web-uid", Controller: ptr.To(true)}},
		},
		Spec: tmpl.Spec.Spec,
	}
	if diff := cmp.Diff(client.Object(want), step.(act.Create).Object); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(template("gpu"), tmpl); diff != "" {
		t.Errorf("the cached template was changed: %s", diff)
	}
	h.templates["gpu"], h.listsAllowed = prioritized(template("gpu")), true
	if _, err := h.creation(h.wants[0]); err != nil {
		t.Errorf("with the gate a prioritized list is refused: %v", err)
	}
}

func TestTheStatusOfAPodNamesItsUID(t *testing.T) {
	h := holder{owner: ownerOfPod(pod("gpu"))}
	got, err := json.Marshal(h.status([]entry{{"gpu", ptr.To("a")}, {"net", nil}}))
	want := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"team","uid":"web-uid"},` +
		`"status":{"resourceClaimStatuses":[{"name":"gpu","resourceClaimName":"a"},{"name":"net"}]}}`
	if err != nil || string(got) != want {
		t.Errorf("applies %s, %v", got, err)
	}
	apply := h.record([]entry{{"gpu", ptr.To("a")}}, "", nil).Stages[0].Steps[0].(act.Apply)
	if apply.Manager != "ResourceClaimController" || !apply.Force || apply.Subresource != "status" {
		t.Errorf("applies as %q, force %t, to %q", apply.Manager, apply.Force, apply.Subresource)
	}
}

func TestClaimsOfPodGroups(t *testing.T) {
	shared := func() *corev1.Pod { return member(pod("gpu")) }
	named := func(claim, template string) *corev1.Pod {
		p := member(pod(template))
		p.Spec.ResourceClaims[0].Name = claim
		return p
	}
	grouped := keyOf(ofGroup, "team", "gang")
	webKey := keyOf(ofPod, "team", "web")
	for name, tc := range map[string]struct {
		key       key
		cached    []runtime.Object
		want, err string
	}{
		"a group gets its claim":                   {key: grouped, cached: []runtime.Object{gang("gpu"), template("gpu")}, want: "create gang-gpu-1, record gpu=gang-gpu-1"},
		"a group that has it gets no other":        {key: grouped, cached: []runtime.Object{recordingGroup(gang("gpu"), "gpu", "a"), ofGang(made("a", "gpu", ""))}},
		"a group that leaves gets none":            {key: grouped, cached: []runtime.Object{leaving(gang("gpu")), template("gpu")}},
		"a group without a template gets an event": {key: grouped, cached: []runtime.Object{gang("gpu")}, err: `resource claim template "gpu": resourceclaimtemplate.resource.k8s.io "gpu" not found`, want: `tell PodGroupResourceClaim gpu: resource claim template "gpu": resourceclaimtemplate.resource.k8s.io "gpu" not found, wait for gang`},
		"its pod gets no claim of its own":         {key: webKey, cached: []runtime.Object{shared(), gang("gpu"), template("gpu")}},
		"its pod gets that of the group":           {key: webKey, cached: []runtime.Object{shared(), recordingGroup(gang("gpu"), "gpu", "a"), ofGang(made("a", "gpu", ""))}, want: "record gpu=a"},
		"its pod gets other claims of its own":     {key: webKey, cached: []runtime.Object{member(pod("gpu", "disk")), recordingGroup(gang("gpu"), "gpu", "a"), template("disk")}, want: "create web-disk-1, record gpu=a disk=web-disk-1"},
		"its pod gets its own by another name":     {key: webKey, cached: []runtime.Object{named("second", "gpu"), gang("gpu"), template("gpu")}, want: "create web-second-1, record second=web-second-1"},
		"its pod gets its own by another template": {key: webKey, cached: []runtime.Object{named("gpu", "big"), gang("gpu"), template("big")}, want: "create web-gpu-1, record gpu=web-gpu-1"},
		"a pod of a group that is not there":       {key: webKey, cached: []runtime.Object{shared(), template("gpu")}, err: `the pod group "gang" is not in the cache`},
		"a scheduled pod reserves for the group": {key: webKey, want: "status a allocated=true gang-uid", cached: []runtime.Object{
			on(recording(shared(), "gpu", "a"), "n"), recordingGroup(gang("gpu"), "gpu", "a"), allocated(ofGang(made("a", "gpu", "")))}},
		"and only once": {key: webKey, cached: []runtime.Object{
			on(recording(shared(), "gpu", "a"), "n"), recordingGroup(gang("gpu"), "gpu", "a"), reserved(allocated(ofGang(made("a", "gpu", ""))), gangRef)}},
		"a pod without a group is as ever": {key: webKey, cached: []runtime.Object{pod("gpu"), template("gpu")}, want: "create web-gpu-1, record gpu=web-gpu-1"},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t, true)
			rig.Cache(t, tc.cached...)
			if got, _, err := planned(t, c, tc.key); got != tc.want || errorText(err) != tc.err {
				t.Errorf("does %q, fails with %v", got, err)
			}
		})
	}
	t.Run("without the gate a pod gets its own", func(t *testing.T) {
		rig, c := rigged(t, false)
		rig.Cache(t, shared(), template("gpu"))
		if got, _, err := planned(t, c, webKey); got != "create web-gpu-1, record gpu=web-gpu-1" || err != nil {
			t.Errorf("does %q, %v", got, err)
		}
	})
	h := holder{owner: ownerOfGroup(gang("gpu"))}
	got := h.status([]entry{{"gpu", ptr.To("a")}})
	if data, err := json.Marshal(got); err != nil || !strings.Contains(string(data), `"status":{"resourceClaimStatuses":[{"name":"gpu","resourceClaimName":"a"}]}`) {
		t.Errorf("applies %s to a group, %v", data, err)
	}
	if reflect.TypeOf(h.Object) != reflect.TypeFor[*schedulingv1alpha2.PodGroup]() {
		t.Errorf("events are about %T", h.Object)
	}
}
