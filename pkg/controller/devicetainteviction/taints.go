package devicetainteviction

import (
	"fmt"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kube-kcm/kube-controller-manager/pkg/seconds"
)

// taint is a NoExecute taint of a device.
type taint struct {
	resourcev1.DeviceTaint
	// rule has put it there; its name is empty for a taint of the device's slice.
	rule ruleID
}

// ruleID is one DeviceTaintRule, and no other of its name.
type ruleID struct {
	name string
	uid  types.UID
}

// allocation is a device that a claim of the pod has, as far as it matters here.
type allocation struct {
	device      string // as operators read it
	tolerations []resourcev1.DeviceToleration
	taints      []taint
}

// newest returns the slices of a pool that have its highest generation.
func newest(pool []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	var highest int64
	for _, slice := range pool {
		highest = max(highest, slice.Spec.Pool.Generation)
	}
	return slices.DeleteFunc(slices.Clone(pool), func(slice *resourcev1.ResourceSlice) bool {
		return slice.Spec.Pool.Generation < highest
	})
}

// sliceTaints are those that the newest slices of its pool give a device.
func sliceTaints(pool []*resourcev1.ResourceSlice, device string) []taint {
	var taints []taint
	for _, slice := range newest(pool) {
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			if len(d.Taints) == 0 || d.Name != device {
				continue
			}
			for _, t := range d.Taints {
				if t.Effect == resourcev1.DeviceTaintEffectNoExecute {
					taints = append(taints, taint{DeviceTaint: t})
				}
			}
		}
	}
	return taints
}

// tainting reports whether a slice gives a device a NoExecute taint.
func tainting(slice *resourcev1.ResourceSlice) bool {
	return slices.ContainsFunc(slice.Spec.Devices, func(d resourcev1.Device) bool {
		return slices.ContainsFunc(d.Taints, func(t resourcev1.DeviceTaint) bool { return t.Effect == resourcev1.DeviceTaintEffectNoExecute })
	})
}

// ruleTaint is what a rule puts on devices, with this effect in place of its own.
func ruleTaint(rule *resourcev1beta2.DeviceTaintRule, effect resourcev1.DeviceTaintEffect) taint {
	t := rule.Spec.Taint
	return taint{
		DeviceTaint: resourcev1.DeviceTaint{Key: t.Key, Value: t.Value, Effect: effect, TimeAdded: t.TimeAdded},
		rule:        ruleID{rule.Name, rule.UID},
	}
}

// selects reports whether a rule is about a device. A rule without a selector is about
// none, an empty selector is about all.
func selects(rule *resourcev1beta2.DeviceTaintRule, driver, pool, device string) bool {
	s := rule.Spec.DeviceSelector
	return s != nil && fits(s.Driver, driver) && fits(s.Pool, pool) && fits(s.Device, device)
}

// fits reports whether a value is the wanted one; nil wants any.
func fits(want *string, is string) bool { return want == nil || *want == is }

const (
	untolerated time.Duration = 0
	endless     time.Duration = -1
)

// tolerance is how long a taint is tolerated. A toleration without seconds has
// no end, of the others the shortest counts.
func tolerance(t resourcev1.DeviceTaint, tolerations []resourcev1.DeviceToleration) time.Duration {
	span, matched := untolerated, false
	for _, toleration := range tolerations {
		switch {
		case !resourceclaim.ToleratesTaint(toleration, t):
		case toleration.TolerationSeconds == nil:
			return endless
		default:
			if s := seconds.Of(max(*toleration.TolerationSeconds, 0)); !matched || s < span {
				span, matched = s, true
			}
		}
	}
	return span
}

// deadline is when a pod has to go, and why.
type deadline struct {
	goes bool
	at   time.Time
	why  string
	// rules are those that have put a taint on its devices that it does not tolerate without end.
	rules []ruleID
}

// deadlineOf returns when a pod with these devices has to go. A taint that does not say when it
// was added counts from the time at which it was seen.
func deadlineOf(devices []allocation, seen time.Time) deadline {
	v := deadline{why: "no device has a NoExecute taint that is not tolerated"}
	for _, d := range devices {
		for _, t := range d.taints {
			span := tolerance(t.DeviceTaint, d.tolerations)
			if span == endless {
				continue
			}
			since := seen
			if t.TimeAdded != nil {
				since = t.TimeAdded.Time
			}
			if at := since.Add(span); !v.goes || at.Before(v.at) {
				v.goes, v.at = true, at
				v.why = fmt.Sprintf("the taint %s of device %s is tolerated for %s", t.Key, d.device, span)
			}
			if t.rule.name != "" && !slices.Contains(v.rules, t.rule) {
				v.rules = append(v.rules, t.rule)
			}
		}
	}
	return v
}
