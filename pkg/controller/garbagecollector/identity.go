package garbagecollector

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// kind is what all objects of a resource share; there is one for each resource.
type kind struct {
	resource   schema.GroupVersionResource
	kind       string
	namespaced bool
}

// location is where an object is served.
type location struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

func (l location) String() string {
	return fmt.Sprintf("%s %s/%s", l.resource.GroupResource(), l.namespace, l.name)
}

// object is the one there that has this UID.
func (l location) object(uid types.UID) *metav1.PartialObjectMetadata {
	o := act.InResource(l.resource, l.namespace, l.name)
	o.UID = uid
	return o
}

// locationOf is where an object that was read is served.
func locationOf(o client.Object) location {
	return location{act.ResourceOf(o), o.GetNamespace(), o.GetName()}
}

// key names a node in the queues. The namespace lets namespaces take turns.
type key = types.NamespacedName

// coordinates say where a dependent looks for its owner.
type coordinates struct {
	apiVersion, kind, namespace, name string
}

// String is how events and errors name an owner.
func (c coordinates) String() string {
	return fmt.Sprintf("%s %s/%s", c.apiVersion+"/"+c.kind, c.namespace, c.name)
}

// sought is where an object in the namespace looks for the owner that it names.
func sought(ref *metav1.OwnerReference, namespace string) coordinates {
	return coordinates{ref.APIVersion, ref.Kind, namespace, ref.Name}
}

// object is one that exists or existed, as its watch showed it.
type object struct {
	schema.GroupVersion
	kind, namespace, name string
	uid                   types.UID
}

func identity(k *kind, namespace, name string, uid types.UID) object {
	if !k.namespaced {
		namespace = ""
	}
	return object{k.resource.GroupVersion(), k.kind, namespace, name, uid}
}

// soughtAt reports whether who looks there would find the object. One outside of
// namespaces is found from everywhere, but has none itself.
func (o object) soughtAt(at coordinates) bool {
	return o.name == at.name && o.kind == at.kind && o.Group == parsed(at.apiVersion).Group && (o.namespace == "" || o.namespace == at.namespace)
}

// knownAt reports whether it is this very object that is looked for there. Where
// the version is another one, the API server has to say.
func (o object) knownAt(at coordinates) bool {
	return o.GroupVersion == parsed(at.apiVersion) && o.soughtAt(at)
}

// parsed is the API of an apiVersion; one that cannot be parsed is of no group.
func parsed(apiVersion string) schema.GroupVersion {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupVersion{Group: apiVersion}
	}
	return version
}

// state is what the metadata of an object say of its deletion.
type state struct {
	// terminating objects are being deleted.
	terminating bool
	// foreground ones wait for their dependents, orphaning ones for being parted
	// from them. What is to be kept goes before what is to be deleted.
	foreground, orphaning bool
}

func stateOf(o metav1.Object) state {
	if o.GetDeletionTimestamp() == nil {
		return state{}
	}
	orphaning := slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents)
	return state{
		terminating: true,
		orphaning:   orphaning,
		foreground:  !orphaning && slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents),
	}
}

// unchanged reports whether two versions of an object are the same to the collector.
func unchanged(a, b metav1.Object) bool {
	return stateOf(a) == stateOf(b) && sameOwners(a.GetOwnerReferences(), b.GetOwnerReferences())
}

func sameOwners(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.OwnerReference) bool {
		return x.UID == y.UID && x.Name == y.Name && x.Kind == y.Kind && x.APIVersion == y.APIVersion && blocks(&x) == blocks(&y)
	})
}

// blocks reports whether the dependent holds up the foreground deletion of this owner.
func blocks(ref *metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// blocksOwner reports whether any of the references to an owner does; it may be named twice.
func blocksOwner(refs []metav1.OwnerReference, owner types.UID) bool {
	return slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool { return ref.UID == owner && blocks(&ref) })
}

// refTo returns the reference to an owner, nil if there is none.
func refTo(refs []metav1.OwnerReference, uid types.UID) *metav1.OwnerReference {
	for i := range refs {
		if refs[i].UID == uid {
			return &refs[i]
		}
	}
	return nil
}
