package resourceclaim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// woken are the keys that a rule wakes.
type woken []string

func (w *woken) Add(k key)                       { *w = append(*w, k.String()) }
func (w *woken) AddAfter(k key, _ time.Duration) { *w = append(*w, "later "+k.String()) }

func (w woken) String() string {
	slices.Sort(w)
	return strings.Join(w, " ")
}

func TestWhatAChangeOfAPodWakes(t *testing.T) {
	const web, gpu, mine, both = "pod:team/web", "claim:team/a", "claim:team/mine", "claim:team/a claim:team/mine"
	used := func() *corev1.Pod { return recording(naming(pod("gpu"), "mine"), "gpu", "a") }
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		want          string
		deleted       bool
	}{
		"one that ended unrecorded":          {after: phase(uid(pod("gpu"), "other"), corev1.PodFailed), want: "claim:team/unrecorded"},
		"a new pod":                          {after: pod("gpu"), want: web},
		"one without claims":                 {after: pod()},
		"one that is only told of its state": {before: used(), after: version(phase(used(), corev1.PodRunning), "2")},
		"a resync":                           {before: used(), after: used(), want: web},
		"one that gets its node":             {before: used(), after: version(on(used(), "n"), "2"), want: web},
		"one whose status changes":           {before: pod("gpu"), after: version(recording(pod("gpu"), "gpu", "b"), "2"), want: web},
		"one that has ended":                 {before: used(), after: version(phase(used(), corev1.PodSucceeded), "2"), want: both},
		"one that had ended before":          {before: phase(used(), corev1.PodSucceeded), after: version(phase(used(), corev1.PodSucceeded), "2")},
		"one that is found ended":            {after: phase(used(), corev1.PodFailed), want: both},
		"one that will never run":            {before: used(), after: version(leaving(used()), "2"), want: both},
		"one that leaves and may run":        {before: on(used(), "n"), after: version(leaving(on(used(), "n")), "2")},
		"one that leaves and has ended":      {before: leaving(on(used(), "n")), after: version(phase(leaving(on(used(), "n")), corev1.PodFailed), "2"), want: both},
		"one that is gone":                   {before: used(), want: both, deleted: true},
		"one without claims that is gone":    {before: pod()},
		"one that was replaced":              {before: naming(pod(), "mine"), after: uid(naming(pod(), "mine"), "new"), want: mine, deleted: true},
		"one with extended resources ended":  {after: phase(extended(pod(), "a"), corev1.PodSucceeded), want: gpu},
		"one with extended resources gone":   {before: extended(pod(), "a"), want: gpu, deleted: true},
		"one with extended resources runs":   {after: extended(pod(), "a")},
		"one that ended gets such a claim":   {before: phase(naming(pod(), "mine"), corev1.PodSucceeded), after: version(phase(extended(naming(pod(), "mine"), "a"), corev1.PodSucceeded), "2"), want: both},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t, false)
			rig.Cache(t, made("unrecorded", "gpu", "other"))
			var got woken
			c.podChanged(runner.Change[corev1.Pod]{Old: tc.before, New: tc.after}, &got)
			if got.String() != tc.want {
				t.Errorf("wakes %s", got)
			}
			if tc.before == nil {
				return
			}
			if _, known := c.deleted.Get(tc.before.UID); known != tc.deleted {
				t.Errorf("knows that it was deleted: %t", known)
			}
		})
	}
}

func TestWhatAChangeOfAClaimWakes(t *testing.T) {
	const itself, web, placed = "claim:team/a", "pod:team/web", "pod:team/placed"
	placedRef := podRef("placed", "placed-uid")
	its := func() *resourceapi.ResourceClaim { return made("a", "gpu", "web-uid") }
	used := func(refs ...reference) *resourceapi.ResourceClaim {
		return version(reserved(allocated(its()), append(refs, placedRef)...), "2")
	}
	for name, tc := range map[string]struct {
		before, after *resourceapi.ResourceClaim
		initial       bool
		want          string
	}{
		"a new one of its pod":            {after: its()},
		"a new one of nobody":             {after: claim("a"), want: web},
		"one that was there at the start": {after: allocated(its()), initial: true, want: placed},
		"one of a pod that is not there":  {after: made("a", "gpu", "gone-uid"), want: itself + " " + web},
		"one of a pod that has ended": {after: func() *resourceapi.ResourceClaim {
			c := its()
			c.OwnerReferences[0].Name, c.OwnerReferences[0].UID = "ended", "ended-uid"
			return c
		}(), want: itself + " " + web},
		"one that is allocated":              {before: its(), after: version(allocated(its()), "2"), want: placed},
		"one reserved for those that run":    {before: allocated(its()), after: used(webRef)},
		"one reserved for one that is gone":  {before: allocated(its()), after: used(podRef("gone", "g")), want: itself},
		"one reserved for an earlier pod":    {before: allocated(its()), after: used(podRef("web", "old")), want: itself},
		"one reserved for one that ended":    {before: allocated(its()), after: used(podRef("ended", "ended-uid")), want: itself},
		"one reserved for something else":    {before: allocated(its()), after: used(foreign)},
		"one whose labels change":            {before: used(webRef), after: version(used(webRef), "3")},
		"one that loses its owner":           {before: its(), after: version(claim("a"), "2"), want: web},
		"one that is being deleted":          {before: its(), after: version(leaving(its()), "2"), want: itself},
		"one that is gone":                   {before: its(), want: web},
		"one that was replaced":              {before: claim("a"), after: uid(version(made("a", "gpu", "gone-uid"), "2"), "new"), want: itself + " " + web},
		"a resync of one that nobody needs":  {before: its(), after: its()},
		"a resync of one that is not used":   {before: allocated(its()), after: allocated(its()), want: placed},
		"one of another name":                {after: claim("b")},
		"one of a PodGroup without the gate": {after: ofGang(claim("a")), want: web},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t, false)
			ended, leaves, scheduled := phase(naming(pod(), "a"), corev1.PodFailed), leaving(naming(pod(), "a")), on(naming(pod(), "a"), "n")
			ended.Name, ended.UID, leaves.Name, scheduled.Name, scheduled.UID = "ended", "ended-uid", "leaves", "placed", "placed-uid"
			rig.Cache(t, recording(pod("gpu"), "gpu", "a"), ended, leaves, scheduled)
			if tc.after != nil {
				rig.Cache(t, tc.after)
			}
			var got woken
			c.claimChanged(runner.Change[resourceapi.ResourceClaim]{Old: tc.before, New: tc.after, Initial: tc.initial}, &got)
			if got.String() != tc.want {
				t.Errorf("wakes %s", got)
			}
		})
	}
}

func TestWhatAPodNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		claim *resourceapi.ResourceClaim
		gated bool
		want  bool
	}{
		"a claim":                            {pod: pod("gpu"), want: true},
		"no claim that is not needed":        {pod: recording(pod("gpu"), "gpu", "")},
		"nothing when it has all":            {pod: recording(pod("gpu"), "gpu", "a"), claim: made("a", "gpu", "web-uid")},
		"a claim in place of that of others": {pod: recording(pod("gpu"), "gpu", "a"), claim: made("a", "gpu", "old-uid"), want: true},
		"a claim for one that is gone":       {pod: recording(pod("gpu"), "gpu", "a"), want: true},
		"the rest of its claims":             {pod: recording(pod("gpu", "disk"), "gpu", "a"), claim: made("a", "gpu", "web-uid"), want: true},
		"nothing from a user":                {pod: on(naming(pod(), "a"), "n")},
		"no reservation without a node":      {pod: naming(pod(), "a"), claim: allocated(claim("a"))},
		"a reservation":                      {pod: on(naming(pod(), "a"), "n"), claim: allocated(claim("a")), want: true},
		"no second reservation":              {pod: on(naming(pod(), "a"), "n"), claim: reserved(allocated(claim("a")), webRef)},
		"none of what leaves":                {pod: on(naming(pod(), "a"), "n"), claim: leaving(allocated(claim("a")))},
		"nothing when it has ended":          {pod: phase(pod("gpu"), corev1.PodFailed)},
		"nothing when it leaves":             {pod: leaving(on(pod("gpu"), "n"))},

		"a look at its PodGroup":                  {pod: member(naming(pod(), "a")), gated: true, want: true},
		"no look at one without the gate":         {pod: member(recording(pod("gpu"), "gpu", "a")), claim: made("a", "gpu", "web-uid")},
		"no look at one when it has none":         {pod: recording(pod("gpu"), "gpu", "a"), claim: made("a", "gpu", "web-uid"), gated: true},
		"no look at one for extended resources":   {pod: extended(member(pod()), "a"), gated: true},
		"its own reservation, and not of a group": {pod: on(member(naming(pod(), "a")), "n"), claim: reserved(allocated(claim("a")), gangRef), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t, tc.gated)
			if tc.claim != nil {
				rig.Cache(t, tc.claim)
			}
			if got := c.needs(tc.pod); got != tc.want {
				t.Errorf("needs something: %t", got)
			}
		})
	}
}

func TestWhatTemplatesAndPodGroupsWake(t *testing.T) {
	const web, group = "pod:team/web", "podgroup:team/gang"
	rig, c := rigged(t, true)
	rig.Cache(t, member(pod("gpu")), gang("gpu"))
	type templates = runner.Change[resourceapi.ResourceClaimTemplate]
	type groups = runner.Change[schedulingv1alpha2.PodGroup]
	for name, tc := range map[string]struct {
		template templates
		group    groups
		want     string
	}{
		"a new template":                  {template: templates{New: template("gpu")}, want: web + " " + group},
		"one that changes":                {template: templates{Old: template("gpu"), New: template("gpu")}, want: web + " " + group},
		"one that nobody names":           {template: templates{New: template("disk")}},
		"one that was there at the start": {template: templates{New: template("gpu"), Initial: true}},
		"one that is gone":                {template: templates{Old: template("gpu")}},
		"a new group":                     {group: groups{New: gang("gpu")}, want: web + " " + group},
		"a group without claims":          {group: groups{New: gang()}, want: web},
		"a group that was there":          {group: groups{New: gang("gpu"), Initial: true}, want: group},
		"a group that is gone":            {group: groups{Old: recordingGroup(gang("gpu"), "gpu", "a")}, want: "claim:team/a"},
		"a group that was replaced":       {group: groups{Old: recordingGroup(gang("gpu"), "gpu", "a"), New: uid(gang(), "new")}, want: "claim:team/a " + web},
	} {
		t.Run(name, func(t *testing.T) {
			var got woken
			if tc.template.Now() != nil {
				c.templateChanged(tc.template, &got)
			} else {
				c.groupChanged(tc.group, &got)
			}
			if got.String() != tc.want {
				t.Errorf("wakes %s", got)
			}
		})
	}
	var got woken
	c.claimChanged(runner.Change[resourceapi.ResourceClaim]{Old: ofGang(claim("x"))}, &got)
	if got.String() != group {
		t.Errorf("a claim of a group wakes %s", got)
	}
}

func TestWhichPodGroupsAreKnownToBeDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		group *schedulingv1alpha2.PodGroup
		want  bool
	}{
		"one with claims":    {gang("gpu"), true},
		"one without claims": {gang(), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := rigged(t, true)
			c.groupChanged(runner.Change[schedulingv1alpha2.PodGroup]{Old: tc.group}, &woken{})
			if _, known := c.deleted.Get(tc.group.UID); known != tc.want {
				t.Errorf("knows that it was deleted: %t", known)
			}
		})
	}
}

func TestAPodGroupFindsItsPodsThatHaveClaims(t *testing.T) {
	rig, c := rigged(t, true)
	bare, alone := member(pod()), pod("gpu")
	bare.Name, alone.Name = "bare", "alone"
	rig.Cache(t, member(pod("gpu")), bare, alone)
	found, err := cache.Lookup[corev1.Pod](c.pods, podsWithClaimsByGroup, "team/gang")
	if err != nil || len(found) != 1 || found[0].Name != "web" {
		t.Errorf("finds %v, %v", found, err)
	}
}

// generating gives what is created a name, as the API server does.
func generating(rig *fixture.Rig) {
	rig.Client.PrependReactor("create", "resourceclaims", func(a ktesting.Action) (bool, runtime.Object, error) {
		c := a.(ktesting.CreateAction).GetObject().(*resourceapi.ResourceClaim)
		c.Name, c.UID = c.GenerateName+"x", "x-uid"
		return false, nil, nil
	})
}

func TestWhatBecomesOfAPodsWrites(t *testing.T) {
	refused := apierrors.NewForbidden(resourceapi.Resource("resourceclaims"), "", errors.New("exceeded quota"))
	conflict := apierrors.NewConflict(resourceapi.Resource("resourceclaims"), "mine", errors.New("changed"))
	const told = "Warning FailedResourceClaimCreation PodResourceClaim gpu: "
	for name, tc := range map[string]struct {
		pod        *corev1.Pod
		verb, of   string
		err        error
		fail       bool
		sent, told string
	}{
		"all goes well":                 {pod: pod("gpu"), sent: "create resourceclaims, patch pods/status"},
		"the claim is refused":          {pod: pod("gpu", "disk"), verb: "create", of: "resourceclaims", err: refused, fail: true, sent: "create resourceclaims", told: told + "create ResourceClaim : " + refused.Error()},
		"the answer is lost":            {pod: pod("gpu"), verb: "create", of: "resourceclaims", err: errCut, fail: true, sent: "create resourceclaims", told: told + "create ResourceClaim : " + errCut.Error()},
		"the namespace is ending":       {pod: pod("gpu"), verb: "create", of: "resourceclaims", err: ending(), sent: "create resourceclaims"},
		"the status is refused":         {pod: pod("gpu"), verb: "patch", of: "pods", err: refused, fail: true, sent: "create resourceclaims, patch pods/status"},
		"the reservation is overtaken":  {pod: on(naming(pod(), "mine"), "n"), verb: "update", of: "resourceclaims", err: conflict, fail: true, sent: "update resourceclaims/status"},
		"the reservation goes well":     {pod: on(naming(pod(), "mine"), "n"), sent: "update resourceclaims/status"},
		"a template that is not there":  {pod: pod("none"), fail: true, told: strings.Replace(told, "gpu", "none", 1) + `resource claim template "none": resourceclaimtemplate.resource.k8s.io "none" not found`},
		"a claim that a user is to add": {pod: naming(pod(), "later")},
	} {
		t.Run(name, func(t *testing.T) {
			mine := allocated(claim("mine"))
			rig, c := rigged(t, false, tc.pod, mine)
			generating(rig)
			if tc.verb != "" {
				rig.Fail(tc.verb, tc.of, tc.err)
			}
			rig.Cache(t, tc.pod, mine, template("gpu"), template("disk"))
			if got := c.Reconcile(t.Context(), keyOf(ofPod, "team", "web")).Err(); (got != nil) != tc.fail {
				t.Errorf("got %v", got)
			}
			if got := rig.Requests(); got != tc.sent {
				t.Errorf("sent %s", got)
			}
			if got := rig.Told(); got != tc.told {
				t.Errorf("told %s", got)
			}
		})
	}
}

// ending is how the API server refuses what is created in a namespace that is being deleted.
func ending() error {
	err := apierrors.NewForbidden(resourceapi.Resource("resourceclaims"), "", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	return err
}

// What is recorded is the name of the claim that was made for it, whatever a webhook has
// done to the annotations.
func TestAClaimWithoutAnnotationsIsRecorded(t *testing.T) {
	web := pod("gpu", "nic")
	rig, c := rigged(t, false, web)
	made := 0
	rig.Client.PrependReactor("create", "resourceclaims", func(a ktesting.Action) (bool, runtime.Object, error) {
		claim := a.(ktesting.CreateAction).GetObject().(*resourceapi.ResourceClaim)
		made++
		claim.Name, claim.Annotations = fmt.Sprint("claim-", made), nil
		return true, claim, nil
	})
	var applied string
	rig.Client.PrependReactor("patch", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		applied = string(a.(ktesting.PatchAction).GetPatch())
		return true, recording(pod("gpu", "nic"), "gpu", "claim-1", "nic", "claim-2"), nil
	})
	rig.Cache(t, web, template("gpu"), template("nic"))
	if err := c.Reconcile(t.Context(), keyOf(ofPod, "team", "web")).Err(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"name":"gpu","resourceClaimName":"claim-1"}`, `{"name":"nic","resourceClaimName":"claim-2"}`} {
		if !strings.Contains(applied, want) {
			t.Errorf("%s is not in %s", want, applied)
		}
	}
}

func TestALostCreationIsLookedForLive(t *testing.T) {
	web := keyOf(ofPod, "team", "web")
	for name, tc := range map[string]struct {
		live []runtime.Object
		held bool
	}{
		"it took place, and the key waits for the cache": {live: []runtime.Object{version(made("web-gpu-x", "gpu", "web-uid"), "7")}, held: true},
		"it did not":             {},
		"another pod made a one": {live: []runtime.Object{version(made("web-gpu-x", "gpu", "old-uid"), "7")}},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t, false, tc.live...)
			c.LookLive(fixture.Live(rig.Client))
			rig.Fail("create", "resourceclaims", errCut)
			rig.Cache(t, pod("gpu"), template("gpu"))
			if err := c.Reconcile(t.Context(), web).Err(); err == nil {
				t.Error("a lost answer is no failure")
			}
			if len(c.Behind(web)) == 0 {
				t.Error("the key does not wait")
			}
			if held := fixture.Held(t.Context(), c.Writes, web); held != tc.held {
				t.Errorf("held: %t", held)
			}
		})
	}
}

func TestWhatBecomesOfAClaimsWrites(t *testing.T) {
	resource := resourceapi.Resource("resourceclaims")
	conflict, notFound := apierrors.NewConflict(resource, "a", errors.New("changed")), apierrors.NewNotFound(resource, "a")
	for name, tc := range map[string]struct {
		claim *resourceapi.ResourceClaim
		verb  string
		err   error
		fail  bool
		gone  bool
		sent  string
	}{
		"all goes well":               {claim: reserved(allocated(owned(claim("a"), "web-uid")), webRef), sent: "update resourceclaims/status, update resourceclaims, delete resourceclaims"},
		"it changes meanwhile":        {claim: reserved(allocated(claim("a")), webRef), verb: "update", err: conflict, fail: true, sent: "update resourceclaims/status"},
		"it goes meanwhile":           {claim: reserved(allocated(claim("a")), webRef), verb: "update", err: notFound, gone: true, sent: "update resourceclaims/status"},
		"not found, and it is there":  {claim: reserved(allocated(claim("a")), webRef), verb: "update", err: notFound, fail: true, sent: "update resourceclaims/status"},
		"its deletion finds nothing":  {claim: owned(claim("a"), "web-uid"), verb: "delete", err: notFound, gone: true, sent: "delete resourceclaims"},
		"its deletion is refused":     {claim: owned(claim("a"), "web-uid"), verb: "delete", err: conflict, fail: true, sent: "delete resourceclaims"},
		"an odd answer to a deletion": {claim: owned(claim("a"), "web-uid"), verb: "delete", err: notFound, fail: true, sent: "delete resourceclaims"},
	} {
		t.Run(name, func(t *testing.T) {
			var live []runtime.Object
			if !tc.gone {
				live = append(live, tc.claim)
			}
			rig, c := rigged(t, false, live...)
			c.LookLive(fixture.Live(rig.Client))
			if tc.verb != "" {
				rig.Fail(tc.verb, "resourceclaims", tc.err)
			}
			rig.Cache(t, tc.claim, phase(on(pod(), "n"), corev1.PodSucceeded))
			if got := c.Reconcile(t.Context(), keyOf(ofClaim, "team", "a")).Err(); (got != nil) != tc.fail {
				t.Errorf("got %v", got)
			}
			if got := rig.Requests(); got != tc.sent {
				t.Errorf("sent %s", got)
			}
		})
	}
}

func TestKeysOfWhatIsGoneAreLeftAlone(t *testing.T) {
	for _, gated := range []bool{false, true} {
		rig, c := rigged(t, gated)
		for _, kind := range []kind{ofPod, ofClaim, ofGroup} {
			if err := c.Reconcile(t.Context(), keyOf(kind, "team", "web")).Err(); err != nil || rig.Requests() != "" {
				t.Errorf("%s: %v, sent %s", kind, err, rig.Requests())
			}
		}
	}
}

func TestAPodIsServedFromItsTemplateToItsEnd(t *testing.T) {
	web := pod("gpu")
	rig, c := rigged(t, false, web, template("gpu"))
	generating(rig)
	// The fake merges what is applied.
	rig.Client.PrependReactor("patch", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		recorded := recording(pod("gpu"), "gpu", "web-gpu-x")
		return true, recorded, rig.Client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), recorded, "team")
	})
	fixture.Run(t, rig.Client, c.Run, rig.In)
	claims, pods := rig.Client.ResourceV1().ResourceClaims("team"), rig.Client.CoreV1().Pods("team")
	fixture.Eventually(t, "the claim is recorded", func() bool {
		got, err := pods.Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && len(got.Status.ResourceClaimStatuses) == 1
	})
	got, err := claims.Get(t.Context(), "web-gpu-x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claims.Update(t.Context(), reserved(allocated(got), webRef), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Update(t.Context(), phase(on(recording(pod("gpu"), "gpu", "web-gpu-x"), "n"), corev1.PodSucceeded), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the claim is gone", func() bool {
		_, err := claims.Get(t.Context(), "web-gpu-x", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestHowClaimsAreCounted(t *testing.T) {
	rig, c := rigged(t, false)
	register(c.claims)
	admin := claim("b")
	admin.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Exactly: &resourceapi.ExactDeviceRequest{AdminAccess: ptr.To(true)}}}
	scheduled := claim("c")
	scheduled.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true", podClaimName: "x"}
	rig.Cache(t, made("a", "gpu", "web-uid"), allocated(made("d", "gpu", "web-uid")), admin, scheduled)
	for _, tc := range []struct {
		claim *resourceapi.ResourceClaim
		want  group
	}{
		{made("a", "gpu", ""), group{source: "resource_claim_template"}},
		{allocated(made("d", "gpu", "")), group{allocated: true, source: "resource_claim_template"}},
		{admin, group{adminAccess: true}},
		{scheduled, group{source: "extended_resource"}},
	} {
		if got := groupOfClaim(tc.claim); got != tc.want {
			t.Errorf("%s counts as %+v", tc.claim.Name, got)
		}
	}
	if series := gathered(t, "resourceclaim_controller_resource_claims"); series != 4 {
		t.Errorf("%d series", series)
	}
}
