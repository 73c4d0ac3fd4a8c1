package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// readAt returns the metadata of an object as they are, and errAbsent if there is none.
func readAt(ctx context.Context, live client.Reader, at location) (*metav1.PartialObjectMetadata, error) {
	switch {
	case unaskable(at.name):
		return nil, fmt.Errorf("get %s: %w", at, errNoName)
	case len(content.IsPathSegmentName(at.name)) > 0: // no object can have it
		return nil, fmt.Errorf("get %s: %w", at, errAbsent)
	}
	object := at.object("")
	err := live.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case absent(at, err):
		return nil, fmt.Errorf("get %s: %w", at, errors.Join(errAbsent, err))
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", at, err)
	}
	return object, nil
}

// unaskable reports whether the API server refuses to look for the name, or would
// look for something else: a list, or what a path leads to.
func unaskable(name string) bool {
	switch {
	case name == ".", strings.Contains(name, "%"):
		return true
	case !strings.Contains(name, "/"):
		return false
	}
	return path.Clean("/"+name) != "/"+name
}

// absent reports whether the answer says that there is no such object. A path
// that is not served is answered with "not found" too, and a proxy may answer
// so what it cannot pass on.
func absent(at location, err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || apierrors.IsUnexpectedServerError(err) || !errors.As(err, &status) {
		return false
	}
	about := status.Status().Details
	if about == nil || about.Name != at.name {
		return false
	}
	return about.Kind != "namespaces" || at.resource.Resource == "namespaces"
}

// observe finds out what a plan about a node needs. What a cache shows of an object
// does where it is the latest.
func (c *collector) observe(ctx context.Context, v view, useCache bool) observed {
	o := observed{view: v}
	switch {
	case v.kind == nil:
		c.lookFor(ctx, &o)
	case v.state.foreground:
		if v.blocking == 0 || v.cycle {
			o.live, o.err = c.read(ctx, v)
		}
	case v.doubted():
		c.readOwners(ctx, &o, useCache)
	}
	return o
}

// readOwners finds out what became of the owners of an object. A deletion carries the
// version that was read: where a cached one is not the latest, the API server refuses.
func (c *collector) readOwners(ctx context.Context, o *observed, useCache bool) {
	if o.err = c.owners.findable(o.view); o.err != nil {
		return // not worth a request
	}
	if shown := c.cached(o.view); useCache && shown != nil && shown.UID == o.uid {
		o.live, o.cached = o.at().object(""), true
		o.live.ObjectMeta = shown.ObjectMeta
	} else {
		o.live, o.err = c.read(ctx, o.view)
	}
	if o.err == nil && o.live.DeletionTimestamp == nil {
		o.owners, o.err = c.owners.findAll(ctx, o.live.OwnerReferences, o.live.Namespace)
	}
}

// read returns an object as it is, and errAbsent also if another has its name.
func (c *collector) read(ctx context.Context, v view) (*metav1.PartialObjectMetadata, error) {
	live, err := readAt(ctx, c.live, v.at())
	if err == nil && live.UID != v.uid {
		return nil, fmt.Errorf("%s has another UID: %w", v.at(), errAbsent)
	}
	return live, err
}

// lookFor finds out whether an owner that is only heard of exists: its watch may
// be behind, it may be of a kind that is not watched, or be gone.
func (c *collector) lookFor(ctx context.Context, o *observed) {
	var errs []error
	for _, at := range o.sought {
		became, err := c.owners.find(ctx, o.uid, at)
		switch {
		case errors.Is(err, errUnresolvable): // such a dependent stays as it is
		case err != nil:
			errs = append(errs, err)
		case became == dangling:
			o.missed = true
		default:
			o.found = true
		}
	}
	o.err = errors.Join(errs...)
}

// observeParted finds out what a plan about an owner needs whose dependents were
// parted from it; some were said to be gone.
func (c *collector) observeParted(ctx context.Context, v view, parted []dependent, gone []types.UID) observed {
	o := observed{view: v}
	for _, uid := range gone {
		if c.graph.depends(uid, v.uid) {
			o.shown++
		}
	}
	switch o.unread = c.unread(); {
	case o.shown > 0, o.unread != nil:
	case c.graph.others(v.uid, parted):
		o.more = true
	default:
		o.live, o.err = c.read(ctx, v)
	}
	return o
}

// owners finds out what became of owners. The API server is asked each time, but
// for those that are gone for sure: a UID never comes back.
type owners struct {
	live   client.Reader
	served meta.RESTMapper
	graph  *graph
	absent *lru.Cache
	reads  *reads
}

// findable returns why it cannot be found out what became of an owner of an object.
func (o owners) findable(v view) error {
	for i := range v.doubtful {
		at := sought(&v.doubtful[i], v.namespace)
		if o.isGone(v.doubtful[i].UID, at) {
			continue
		}
		if _, err := o.place(at); err != nil {
			return err
		}
	}
	return nil
}

// findAll returns what became of each owner of an object in this namespace.
func (o owners) findAll(ctx context.Context, refs []metav1.OwnerReference, namespace string) ([]owner, error) {
	found := make([]owner, 0, len(refs))
	for i := range refs {
		became, err := o.find(ctx, refs[i].UID, sought(&refs[i], namespace))
		if err != nil {
			return nil, err
		}
		found = append(found, owner{refs[i], became})
	}
	return found, nil
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
	if _, known := o.absent.Get(absentOwner{uid, place}); known && !o.graph.shows(uid, at) {
		return dangling, nil
	}
	live, err := o.reads.get(ctx, o.live, place)
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
	version, err := schema.ParseGroupVersion(at.apiVersion)
	if err != nil {
		return location{}, err
	}
	served, err := o.served.RESTMapping(version.WithKind(at.kind).GroupKind(), version.Version)
	switch {
	case err != nil:
		return location{}, fmt.Errorf("find the resource of %s %s: %w", at.apiVersion, at.kind, err)
	case served.Scope.Name() != meta.RESTScopeNameNamespace:
		return location{served.Resource, "", at.name}, nil
	case at.namespace == "":
		return location{}, errUnresolvable
	}
	return location{served.Resource, at.namespace, at.name}, nil
}

// isGone reports whether the deletion of an owner was seen.
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
