package monitor

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
)

// settle announces changed states, and reports whether all is well, and whether a
// resource is answered as one that is not served.
func (s *Set) settle(ctx context.Context) (well, absent bool) {
	well = s.ready()
	var changed []Resource
	for _, w := range s.all() {
		w.release()
		state := w.state()
		well = well && state.Listed && state.Err == nil
		absent = absent || apierrors.IsNotFound(state.Err)
		if state.Listed == w.shown.Listed && (state.Err == nil) == (w.shown.Err == nil) {
			continue
		}
		switch {
		case state.Err != nil && w.shown.Err == nil:
			klog.FromContext(ctx).Info("A resource cannot be read; whatever needs it has to wait",
				"resource", state.Resource.GroupVersionResource, "err", state.Err)
		case state.Err == nil && w.shown.Err != nil:
			klog.FromContext(ctx).Info("A resource can be read again", "resource", state.Resource.GroupVersionResource)
		}
		s.mu.Lock()
		w.shown = state
		s.mu.Unlock()
		showState(state)
		changed = append(changed, state.Resource)
	}
	s.call(changed)
	return well, absent
}

// call has those look who subscribed to a change of the state of any of the resources, once:
// they look at all of them.
func (s *Set) call(changed []Resource) {
	for _, f := range s.followers {
		if f.interest.Served != nil && slices.ContainsFunc(changed, f.interest.Wants) {
			f.interest.Served()
		}
	}
}

// states returns those of the wanted resources in order, and since when
// discovery has been read, zero if it has not.
func (s *Set) states(wants func(Resource) bool) ([]State, time.Time) {
	s.mu.Lock()
	sorted, discovered := s.catalog.sorted(), s.discovered
	s.mu.Unlock()
	var states []State
	for _, resource := range sorted {
		if w := s.find(resource.GroupResource()); w != nil && wants(resource) {
			states = append(states, w.state())
		}
	}
	return slices.Clip(states), discovered
}
