package garbagecollector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

var (
	boxes  = &kind{schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "boxes"}, "Box", true}
	globes = &kind{schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "globes"}, "Globe", false}
	served = map[string]*kind{"g/v1/Box": boxes, "g/v1/Globe": globes}
)

var (
	errBroken = errors.New("conversion webhook failed")
	// errConflict: the object is not as the request expects it to be, or somebody
	// refuses it in these words.
	errConflict = errors.New("conflict")
	// errPatchKind: the kind does not know this form of patch.
	errPatchKind = errors.New("unsupported form of patch")
)

// requests are what the server answers.
type requests interface {
	get(context.Context, location) (*metav1.PartialObjectMetadata, error)
	delete(context.Context, location, metav1.DeleteOptions) error
	patch(ctx context.Context, at location, form types.PatchType, body []byte) (*metav1.PartialObjectMetadata, error)
}

// clientOf makes requests as the collector and the kit do; all others panic.
type clientOf struct {
	client.Client
	requests
	mapper meta.RESTMapper
}

// said is the answer of an API server in its own words.
func said(at location, err error) error {
	resource := kindOf(at.resource).resource.GroupResource()
	switch {
	case errors.Is(err, errAbsent):
		return apierrors.NewNotFound(resource, at.name)
	case errors.Is(err, errConflict):
		return apierrors.NewConflict(resource, at.name, err)
	case errors.Is(err, errPatchKind):
		return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", resource, at.name, "", 0, false)
	}
	return err
}

func (c clientOf) RESTMapper() meta.RESTMapper { return c.mapper }

func (c clientOf) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return o.GetObjectKind().GroupVersionKind(), nil
}

func (c clientOf) Get(ctx context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	at := location{act.ResourceOf(into), name.Namespace, name.Name}
	o, err := c.get(ctx, at)
	return answer(at, into, o, err)
}

func (c clientOf) Patch(ctx context.Context, into client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(into)
	if err != nil {
		return err
	}
	at := locationOf(into)
	o, err := c.patch(ctx, at, patch.Type(), body)
	return answer(at, into, o, err)
}

func answer(at location, into client.Object, o *metav1.PartialObjectMetadata, err error) error {
	if err != nil {
		return said(at, err)
	}
	into.(*metav1.PartialObjectMetadata).ObjectMeta = o.ObjectMeta
	return nil
}

func (c clientOf) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	at := locationOf(o)
	options := (&client.DeleteOptions{}).ApplyOptions(opts).AsDeleteOptions()
	return said(at, c.delete(ctx, at, *options))
}

// handOf writes to a server.
func handOf(s *server, r requests) reconcile.Hand {
	return reconcile.Hand{Client: clientOf{requests: r, mapper: act.Resources(mapper{server: s})}, Events: record.NewFakeRecorder(100)}
}

// server is an API server in memory: UIDs, versions, preconditions, finalizers
// and what deletion does with them, as the API conventions say.
type server struct {
	objects map[location]*metav1.PartialObjectMetadata
	version int
	uids    int
	// broken resources answer nothing, unknown kinds are not served.
	broken  map[string]bool
	unknown map[string]bool
	// requests counts verbs.
	requests map[string]int
	// told is called with each change: an object before and after.
	told func(k *kind, before, now *metav1.PartialObjectMetadata)
	// beforeDelete is called with what the API server is about to delete.
	beforeDelete func(o *metav1.PartialObjectMetadata)
	// odd is asked for another answer than the right one about an object.
	odd func(verb string, o *metav1.PartialObjectMetadata) error
	// freed is called with an owner whose dependents are to stay, before its finalizer goes.
	freed func(o *metav1.PartialObjectMetadata)
}

func newServer() *server {
	return &server{objects: map[location]*metav1.PartialObjectMetadata{}, broken: map[string]bool{}, unknown: map[string]bool{},
		requests: map[string]int{}, told: func(*kind, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadata) {}}
}

func kindOf(r schema.GroupVersionResource) *kind {
	if r == boxes.resource {
		return boxes
	}
	return globes
}

// mapper is what the server says that it serves.
type mapper struct {
	meta.RESTMapper
	*server
}

func (m mapper) RESTMapping(of schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	k := served[of.WithVersion(versions[0]).GroupVersion().String()+"/"+of.Kind]
	if k == nil || m.unknown[of.Kind] {
		return nil, fmt.Errorf("no matches for kind %s", of.Kind)
	}
	scope := meta.RESTScope(meta.RESTScopeRoot)
	if k.namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &meta.RESTMapping{Resource: k.resource, Scope: scope}, nil
}

func (s *server) at(verb string, at location) (*metav1.PartialObjectMetadata, error) {
	s.requests[verb]++
	if s.broken[kindOf(at.resource).resource.Resource] {
		return nil, errBroken
	}
	o := s.objects[at]
	if o == nil {
		return nil, errAbsent
	}
	if s.odd != nil {
		if err := s.odd(verb, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (s *server) get(_ context.Context, at location) (*metav1.PartialObjectMetadata, error) {
	o, err := s.at("get", at)
	if err != nil {
		return nil, err
	}
	return o.DeepCopy(), nil
}

func (s *server) put(at location, now *metav1.PartialObjectMetadata) {
	before := s.objects[at]
	s.version++
	if now == nil {
		delete(s.objects, at)
	} else {
		now.ResourceVersion = strconv.Itoa(s.version)
		s.objects[at] = now
	}
	s.told(kindOf(at.resource), before, now)
}

// create makes an object, with a UID of its own unless it has one.
func (s *server) create(k *kind, namespace, name string, refs ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	s.uids++
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, s.uids)), OwnerReferences: refs}}
	s.put(location{k.resource, namespace, name}, o)
	return o
}

// change puts a changed copy of an object that exists.
func (s *server) change(at location, change func(*metav1.PartialObjectMetadata)) {
	now := s.objects[at].DeepCopy()
	change(now)
	s.settle(at, now)
}

// settle stores an object, or removes it when nothing holds it any more.
func (s *server) settle(at location, now *metav1.PartialObjectMetadata) {
	if now.DeletionTimestamp != nil && len(now.Finalizers) == 0 {
		now = nil
	}
	s.put(at, now)
}

func (s *server) delete(_ context.Context, at location, o metav1.DeleteOptions) error {
	now, err := s.at("delete", at)
	if err != nil {
		return err
	}
	if p := o.Preconditions; p != nil {
		if p.UID != nil && *p.UID != now.UID || p.ResourceVersion != nil && *p.ResourceVersion != now.ResourceVersion {
			return errConflict
		}
		if s.beforeDelete != nil {
			s.beforeDelete(now)
		}
	}
	next := now.DeepCopy()
	own := func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	}
	policy := policyOf(next)
	if o.PropagationPolicy != nil {
		policy = *o.PropagationPolicy
	}
	next.Finalizers = slices.DeleteFunc(next.Finalizers, own)
	switch policy {
	case metav1.DeletePropagationForeground:
		next.Finalizers = append(next.Finalizers, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationOrphan:
		next.Finalizers = append(next.Finalizers, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationBackground:
	}
	if next.DeletionTimestamp == nil {
		stamp := metav1.Now()
		next.DeletionTimestamp = &stamp
	}
	s.settle(at, next)
	return nil
}

func (s *server) patch(_ context.Context, at location, form types.PatchType, body []byte) (*metav1.PartialObjectMetadata, error) {
	now, err := s.at("patch", at)
	if err != nil {
		return nil, err
	}
	if form == types.StrategicMergePatchType && at.resource == globes.resource {
		return nil, errPatchKind
	}
	original, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	var merged []byte
	if form == types.StrategicMergePatchType {
		merged, err = strategicpatch.StrategicMergePatch(original, body, metav1.PartialObjectMetadata{})
	} else {
		merged, err = mergePatch(original, body)
	}
	if err != nil {
		return nil, err
	}
	next := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(merged, next); err != nil {
		return nil, err
	}
	if next.UID != now.UID || next.ResourceVersion != now.ResourceVersion {
		return nil, errConflict
	}
	if s.freed != nil && stateOf(now).orphaning && !stateOf(next).orphaning {
		s.freed(now)
	}
	s.settle(at, next)
	return next.DeepCopy(), nil
}

// mergePatch replaces the fields of the metadata that the patch has.
func mergePatch(original, patch []byte) ([]byte, error) {
	var o, p struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if err := errors.Join(json.Unmarshal(original, &o), json.Unmarshal(patch, &p)); err != nil {
		return nil, err
	}
	for field, value := range p.Metadata {
		o.Metadata[field] = value
	}
	return json.Marshal(o)
}

// ref is a reference to an object.
func ref(k *kind, o *metav1.PartialObjectMetadata) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: k.resource.GroupVersion().String(), Kind: k.kind, Name: o.Name, UID: o.UID}
}

func blocking(r metav1.OwnerReference) metav1.OwnerReference {
	yes := true
	r.BlockOwnerDeletion = &yes
	return r
}
