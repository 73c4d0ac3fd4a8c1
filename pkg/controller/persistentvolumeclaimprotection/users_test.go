package persistentvolumeclaimprotection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestWhoUsesAClaim(t *testing.T) {
	data := claim("data")
	own := pod("web", scratch("tmp"))
	owned := ownedBy(claim("web-tmp"), own)
	handed := ownedBy(claim("data"), pod("web", naming("data"))) // as a StatefulSet does for whenScaled: Delete
	endless := deleted(own.DeepCopy(), 0)
	endless.DeletionGracePeriodSeconds = nil
	for name, tc := range map[string]struct {
		pod             *corev1.Pod
		claim           *corev1.PersistentVolumeClaim
		holds, refersTo bool
	}{
		"a pod that runs":                               {pod("p", naming("data")), data, true, true},
		"one that names another claim":                  {pod("p", naming("other")), data, false, false},
		"one with several volumes":                      {pod("p", naming("other"), naming("data")), data, true, true},
		"one without volumes":                           {pod("p"), data, false, false},
		"one without a node":                            {unscheduled(pod("p", naming("data"))), data, false, true},
		"one that has succeeded":                        {ended(pod("p", naming("data")), corev1.PodSucceeded), data, true, false},
		"one that has failed":                           {ended(pod("p", naming("data")), corev1.PodFailed), data, true, false},
		"one that is being deleted":                     {deleted(pod("p", naming("data")), 30), data, true, true},
		"one whose containers have stopped":             {idle(deleted(pod("p", naming("data")), 30)), data, true, false},
		"one that is forced off its node":               {deleted(pod("p", naming("data")), 0), data, true, true},
		"the owner of an ephemeral claim":               {own, owned, true, true},
		"the owner that ends":                           {deleted(own.DeepCopy(), 30), owned, true, true},
		"the owner that is forced off its node":         {deleted(own.DeepCopy(), 0), owned, false, true},
		"the owner that ends, for how long nobody says": {endless, owned, true, true},
		"a claim of the pod for none of its volumes":    {own, ownedBy(claim("web-old"), own), false, false},
		"the owner without a node":                      {unscheduled(own.DeepCopy()), owned, false, true},
		"a pod of the owner's name":                     {renewed(own.DeepCopy()), owned, false, false},
		"a claim that only has the ephemeral name":      {own, claim("web-tmp"), false, false},
		"a pod that also names the claim that it has":   {deleted(pod("web", scratch("tmp"), naming("web-tmp")), 0), owned, false, true},
		"a pod that was handed a claim of its set":      {pod("web", naming("data")), handed, true, true},
		"that ends":                              {deleted(pod("web", naming("data")), 30), handed, true, true},
		"that is forced off its node":            {deleted(pod("web", naming("data")), 0), handed, false, true},
		"another of its name that is forced off": {renewed(deleted(pod("web", naming("data")), 0)), handed, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := holder(tc.claim, []*corev1.Pod{tc.pod}) != ""; got != tc.holds {
				t.Errorf("holds it: %v", got)
			}
			if got := reference(tc.claim, []*corev1.Pod{tc.pod}) != ""; got != tc.refersTo {
				t.Errorf("refers to it: %v", got)
			}
		})
	}
	if got := holder(data, []*corev1.Pod{pod("c", naming("data")), pod("a"), pod("b", naming("data"))}); got != "b" {
		t.Errorf("named pod %q, want the first by name", got)
	}
	if diff := cmp.Diff([]string{"data", "web-tmp"}, claimsOf(pod("web", naming("data"), corev1.Volume{Name: "x"}, scratch("tmp")))); diff != "" {
		t.Error(diff)
	}
}

func TestWaking(t *testing.T) {
	running := pod("p", naming("data"))
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		old, now      bool
	}{
		"a pod that starts on a node":           {nil, running, false, false},
		"a pod that stays":                      {running, pod("p", naming("data")), false, false},
		"a new pod without a node":              {nil, unscheduled(pod("p")), false, true},
		"a pod that gets its node":              {unscheduled(pod("p")), running, false, false},
		"a pod that ends":                       {running, ended(pod("p"), corev1.PodSucceeded), false, true},
		"a pod whose deletion begins":           {running, deleted(pod("p"), 30), false, false},
		"one whose containers have stopped":     {running, idle(deleted(pod("p"), 30)), false, true},
		"one that is forced off its node":       {running, deleted(pod("p"), 0), false, true},
		"a pod that is gone":                    {running, nil, true, false},
		"another pod of the name, on a node":    {running, renewed(pod("p")), true, false},
		"another pod of the name, without node": {running, renewed(unscheduled(pod("p"))), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if old, now := waking(tc.before, tc.after, false); old != tc.old || now != tc.now {
				t.Errorf("wakes claims of the old pod: %v, of the new: %v", old, now)
			}
			if _, now := waking(tc.before, tc.after, true); now != (tc.after != nil) {
				t.Error("for the condition each event of a pod counts")
			}
		})
	}
}
