package resourcepoolstatusrequest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
)

// pool is what the newest slices of a pool say.
type pool struct {
	name       string
	generation int64
	slices     []*resourcev1.ResourceSlice
	// wanted is how many slices the pool consists of.
	wanted int64
}

// poolsOf returns the pools of these slices, by name; only the one of that name if given.
func poolsOf(all []*resourcev1.ResourceSlice, only *string) []*pool {
	byName := map[string]*pool{}
	for _, slice := range all {
		of := slice.Spec.Pool
		if only != nil && *only != of.Name {
			continue
		}
		p := byName[of.Name]
		if p == nil || of.Generation > p.generation {
			p = &pool{name: of.Name, generation: of.Generation}
			byName[of.Name] = p
		}
		if of.Generation == p.generation {
			p.slices = append(p.slices, slice)
			p.wanted = max(p.wanted, of.ResourceSliceCount)
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *pool) int { return cmp.Compare(a.name, b.name) })
}

// incomplete says which slices of the pool are not published yet; "" when all are.
func (p *pool) incomplete(driver string) string {
	if int64(len(p.slices)) >= p.wanted {
		return ""
	}
	return fmt.Sprintf("pool %s/%s is incomplete: observed %d/%d slices at generation %d", driver, p.name, len(p.slices), p.wanted, p.generation)
}

// nodeName is the node that all slices of the pool name; nil if there is none.
func (p *pool) nodeName() *string {
	first := p.slices[0].Spec.NodeName
	for _, slice := range p.slices {
		if name := slice.Spec.NodeName; name == nil || *name == "" || *name != *first {
			return nil
		}
	}
	return first
}

// status is what is answered of the pool.
func (p *pool) status(driver string, allocated int) resourcev1alpha3.PoolStatus {
	total := 0
	for _, slice := range p.slices {
		total += len(slice.Spec.Devices)
	}
	return resourcev1alpha3.PoolStatus{
		Driver: driver, PoolName: p.name, Generation: p.generation, NodeName: p.nodeName(),
		ResourceSliceCount: number(len(p.slices)), TotalDevices: number(total), AllocatedDevices: number(allocated),
		AvailableDevices: number(max(0, total-allocated)), UnavailableDevices: number(0),
	}
}

func number(n int) *int32 { return new(int32(n)) }

// allocatedIn counts the allocated devices of a driver by their pool. One that several
// claims share counts for each.
func allocatedIn(driver string, claims []*resourcev1.ResourceClaim) map[string]int {
	counts := map[string]int{}
	for _, claim := range claims {
		for _, device := range allocated(claim) {
			if device.Driver == driver {
				counts[device.Pool]++
			}
		}
	}
	return counts
}

// allocated returns the devices that a claim has; none before it is allocated.
func allocated(claim *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}
