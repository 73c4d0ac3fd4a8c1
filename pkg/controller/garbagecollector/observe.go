package garbagecollector

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// absentOwners is how many owners that are gone are remembered after their last
// dependent.
const absentOwners = 500

// absentOwner is an owner that is not where it was looked for. Beside these, the
// cache holds objects whose deletion was seen.
type absentOwner struct {
	uid types.UID
	at  location
}

// errUnresolvable: an object outside of namespaces cannot be owned by one in a namespace.
var errUnresolvable = errors.New("an object without a namespace names an owner of a kind that has namespaces")

// owners finds out what became of owners. The API server is asked each time, but
// for those that are gone for sure: a UID never comes back.
type owners struct {
	api    api
	graph  *graph
	absent *lru.Cache
	reads  *reads
}

// judge returns what became of each owner of an object in this namespace.
func (o owners) judge(ctx context.Context, refs []metav1.OwnerReference, namespace string) ([]owner, error) {
	judged := make([]owner, 0, len(refs))
	for i := range refs {
		became, err := o.find(ctx, refs[i].UID, sought(&refs[i], namespace))
		if err != nil {
			return nil, err
		}
		judged = append(judged, owner{refs[i], became})
	}
	return judged, nil
}

// find returns what became of an owner that is looked for in one place.
func (o owners) find(ctx context.Context, uid types.UID, at coordinates) (standing, error) {
	if o.isGone(uid, at) {
		return dangling, nil
	}
	place, err := o.place(at)
	if err != nil {
		return solid, err
	}
	if _, known := o.absent.Get(absentOwner{uid, place}); known {
		return dangling, nil
	}
	live, err := o.reads.get(ctx, o.api, place)
	switch {
	case errors.Is(err, errAbsent) && o.graph.shows(uid, at):
		return solid, fmt.Errorf("%s: %w", place, errShown) // one of the two is about to change
	case errors.Is(err, errAbsent), err == nil && live.UID != uid:
		o.absent.Add(absentOwner{uid, place}, nil)
		return dangling, nil
	case err != nil:
		return solid, err
	case stateOf(live).foreground:
		return waiting, nil
	}
	return solid, nil
}

// place is where an owner is served.
func (o owners) place(at coordinates) (location, error) {
	resource, namespaced, err := o.api.resolve(at.apiVersion, at.kind)
	if err != nil {
		return location{}, err
	}
	if !namespaced {
		return location{resource, "", at.name}, nil
	}
	if at.namespace == "" {
		return location{}, errUnresolvable
	}
	return location{resource, at.namespace, at.name}, nil
}

// isGone tells whether the deletion of an owner was seen.
func (o owners) isGone(uid types.UID, at coordinates) bool {
	if o.graph.gone(uid, at) {
		return true
	}
	for _, namespace := range []string{at.namespace, ""} {
		if _, seen := o.absent.Get(object{parsed(at.apiVersion), at.kind, namespace, at.name, uid}); seen {
			return true
		}
	}
	return false
}

// sawGone remembers an object whose deletion was seen, and sawThere one that was seen.
func (o owners) sawGone(gone object)   { o.absent.Add(gone, nil) }
func (o owners) sawThere(there object) { o.absent.Remove(there) }
