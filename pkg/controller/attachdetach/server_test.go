package attachdetach

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"encoding/json"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	podsKind   = "pods"
	nodesKind  = "nodes"
	claimsKind = "persistentvolumeclaims"
	pvsKind    = "persistentvolumes"
	vasKind    = "volumeattachments"
)

var kinds = []string{podsKind, nodesKind, claimsKind, pvsKind, vasKind}

// server holds objects, and the log of their changes, which caches follow.
type server struct {
	version int
	objects map[string]map[string]metav1.Object
	log     map[string][]event
	judge   func(kind string, before, after any)
}

type event struct {
	before, after metav1.Object
	version       int
	initial       bool // of the first list of a cache, and in no log
}

func newServer() *server {
	s := &server{objects: map[string]map[string]metav1.Object{}, log: map[string][]event{}, judge: func(string, any, any) {}}
	for _, kind := range kinds {
		s.objects[kind] = map[string]metav1.Object{}
	}
	return s
}

func (s *server) get(kind, name string) any {
	if o, is := s.objects[kind][name]; is {
		return o
	}
	return nil
}

func (s *server) all(kind string) []metav1.Object {
	return slices.SortedFunc(maps.Values(s.objects[kind]), func(a, b metav1.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
}

// write replaces an object; before or after may be nil.
func (s *server) write(kind string, before, after metav1.Object) {
	s.version++
	var old, now any
	if before != nil {
		old = before
	}
	if after != nil {
		now = after
	}
	s.judge(kind, old, now)
	e := event{before: before, after: after, version: s.version}
	if after == nil {
		delete(s.objects[kind], before.GetName())
	} else {
		after.SetResourceVersion(strconv.Itoa(s.version))
		s.objects[kind][after.GetName()] = after
	}
	s.log[kind] = append(s.log[kind], e)
}

var vaResource = schema.GroupResource{Group: "storage.k8s.io", Resource: vasKind}

func (s *server) create(va *storagev1.VolumeAttachment) error {
	if s.get(vasKind, va.Name) != nil {
		return apierrors.NewAlreadyExists(vaResource, va.Name)
	}
	made := va.DeepCopy()
	made.UID = types.UID(fmt.Sprintf("va-%d", s.version))
	s.write(vasKind, nil, made)
	return nil
}

func (s *server) remove(name string, uid types.UID) error {
	va, is := s.get(vasKind, name).(*storagev1.VolumeAttachment)
	switch {
	case !is:
		return apierrors.NewNotFound(vaResource, name)
	case va.UID != uid:
		return apierrors.NewConflict(vaResource, name, fmt.Errorf("another UID"))
	case va.DeletionTimestamp == nil:
		after := va.DeepCopy()
		after.DeletionTimestamp = &metav1.Time{}
		s.write(vasKind, va, after)
	}
	return nil
}

// patch replaces the list of what is attached to a node.
func (s *server) patch(name string, data []byte) error {
	n, is := s.get(nodesKind, name).(*corev1.Node)
	if !is {
		return apierrors.NewNotFound(schema.GroupResource{Resource: nodesKind}, name)
	}
	var p struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
		}
		Status struct{ VolumesAttached []corev1.AttachedVolume }
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	if p.Metadata.UID != n.UID || p.Metadata.ResourceVersion != n.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: nodesKind}, name, fmt.Errorf("another UID or version"))
	}
	after := n.DeepCopy()
	after.Status.VolumesAttached = p.Status.VolumesAttached
	s.write(nodesKind, n, after)
	return nil
}
