package persistentvolumebinder

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// foreign is a 404 of something in front of the API server.
func foreign(resource string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", corev1.Resource(resource), "", "<html>", 0, true)
}

// volume returns an Available volume with 10Gi that one node may write.
func volume(name string, with ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	for _, f := range with {
		f(pv)
	}
	return pv
}

// claim returns a Pending claim to 5Gi that one node may write.
func claim(name string, with ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	for _, f := range with {
		f(c)
	}
	return c
}

type onVolume = func(*corev1.PersistentVolume)
type onClaim = func(*corev1.PersistentVolumeClaim)

func holds(size string) onVolume {
	return func(pv *corev1.PersistentVolume) { pv.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse(size) }
}

func access(modes ...corev1.PersistentVolumeAccessMode) onVolume {
	return func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes = modes }
}

// of is the claimRef of a volume; without a UID it is any claim of the name.
func of(claim string, uid types.UID) onVolume {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "ns", Name: claim, UID: uid}
	}
}

func in(phase corev1.PersistentVolumePhase) onVolume {
	return func(pv *corev1.PersistentVolume) { pv.Status.Phase = phase }
}

func policy(p corev1.PersistentVolumeReclaimPolicy) onVolume {
	return func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = p }
}

func provisionedByName(name string) onVolume {
	return noted(volumehelpers.AnnDynamicallyProvisioned, name)
}

func noted(key, value string) onVolume {
	return func(pv *corev1.PersistentVolume) { metav1.SetMetaDataAnnotation(&pv.ObjectMeta, key, value) }
}

func finalizers(all ...string) onVolume {
	return func(pv *corev1.PersistentVolume) { pv.Finalizers = all }
}

func ofClass(name string) onVolume {
	return func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = name }
}

func block(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }

func labelled(key, value string) onVolume {
	return func(pv *corev1.PersistentVolume) { pv.Labels = map[string]string{key: value} }
}

func attributes(name string) onVolume {
	return func(pv *corev1.PersistentVolume) { pv.Spec.VolumeAttributesClassName = &name }
}

func ending(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = &metav1.Time{Time: noon} }

func hostPath(path string) onVolume {
	return func(pv *corev1.PersistentVolume) { pv.Spec.HostPath = &corev1.HostPathVolumeSource{Path: path} }
}

func nfs(pv *corev1.PersistentVolume) { pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "s", Path: "/p"} }

func csi(pv *corev1.PersistentVolume) {
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "h"}
}

func wants(size string) onClaim {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

func wantsAccess(modes ...corev1.PersistentVolumeAccessMode) onClaim {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = modes }
}

func wantsClass(name string) onClaim {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

func wantsVolume(name string) onClaim {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = name }
}

func wantsAttributes(name string) onClaim {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &name }
}

func wantsBlock(c *corev1.PersistentVolumeClaim) {
	c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
}

func selects(key, value string) onClaim {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func says(key, value string) onClaim {
	return func(c *corev1.PersistentVolumeClaim) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value) }
}

// boundOnce is a claim that has been bound to a volume.
func boundOnce(volume string) onClaim {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName = volume
		says(volumehelpers.AnnBindCompleted, yes)(c)
		c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}}
	}
}

func lostPhase(c *corev1.PersistentVolumeClaim) {
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost}
}

func class(name, provisioner string, with ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}, Provisioner: provisioner}
	for _, f := range with {
		f(c)
	}
	return c
}

func waitsForPods(c *storagev1.StorageClass) {
	c.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
}

func byDefault(at time.Time) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) {
		c.Annotations = map[string]string{defaultMarks[0]: "true"}
		c.CreationTimestamp = metav1.Time{Time: at}
	}
}

// twoPlugins are those that the original still has.
type twoPlugins struct{}

func (p twoPlugins) Named(name string) *Plugin {
	switch name {
	case "kubernetes.io/host-path":
		return p.Of(volume("", hostPath("/")))
	case "kubernetes.io/nfs":
		return p.Of(volume("", nfs))
	}
	return nil
}

// played goes through a plan and all that follows from it, as if each step succeeded, and
// returns what is written and told.
func played(p act.Plan) (did []string, last act.Plan) {
	var results act.Results
	for {
		for _, stage := range p.Stages {
			for _, step := range stage.Steps {
				did = append(did, inWords(step))
				results = append(results, act.Result{Step: step, Became: act.Done, Object: step.About()})
			}
		}
		if p.Then == nil || p.Err != nil {
			return did, p
		}
		p = p.Then(results)
	}
}

// inWords is what a step writes, or tells.
func inWords(step act.Step) string {
	switch s := step.(type) {
	case act.Event:
		return fmt.Sprintf("tell %s: %s %s %s", s.On.GetName(), s.Type, s.Reason, s.Message)
	case act.Update:
		words := []string{"write", strings.ToLower(strings.TrimPrefix(reflect.TypeOf(s.Object).Elem().Name(), "PersistentVolume")), s.Object.GetName()}
		switch object := s.Object.(type) {
		case *corev1.PersistentVolume:
			words[1] = "volume"
			words = append(words, volumeInWords(object, s.Subresource)...)
		case *corev1.PersistentVolumeClaim:
			words = append(words, claimInWords(object, s.Subresource)...)
		}
		return strings.Join(words, " ")
	}
	return step.Verb() + " " + step.About().GetName()
}

func volumeInWords(pv *corev1.PersistentVolume, subresource string) []string {
	if subresource == "status" {
		return []string{strings.TrimSpace(string(pv.Status.Phase) + " " + pv.Status.Message)}
	}
	to := "free"
	if ref := pv.Spec.ClaimRef; ref != nil {
		to = "of " + ref.Name + "[" + string(ref.UID) + "]"
	}
	return []string{to, marks(pv)}
}

func claimInWords(c *corev1.PersistentVolumeClaim, subresource string) []string {
	if subresource == "" {
		return []string{"with " + c.Spec.VolumeName, marks(c), ptr.Deref(c.Spec.StorageClassName, "-")}
	}
	size := ""
	if q, ok := c.Status.Capacity[corev1.ResourceStorage]; ok {
		size = q.String()
	}
	return []string{string(c.Status.Phase), size, fmt.Sprint(c.Status.AccessModes), ptr.Deref(c.Status.CurrentVolumeAttributesClassName, "-")}
}

// marks are the annotations and finalizers that are the controller's.
func marks(o client.Object) string {
	var all []string
	for short, key := range map[string]string{"b": volumehelpers.AnnBoundByController, "c": volumehelpers.AnnBindCompleted} {
		if _, is := o.GetAnnotations()[key]; is {
			all = append(all, short)
		}
	}
	if len(all) == 2 {
		all = []string{"b", "c"}
	}
	for _, key := range []string{volumehelpers.AnnMigratedTo, volumehelpers.AnnStorageProvisioner, volumehelpers.AnnBetaStorageProvisioner} {
		if v, is := o.GetAnnotations()[key]; is {
			all = append(all, v)
		}
	}
	return "{" + strings.Join(append(all, o.GetFinalizers()...), ",") + "}"
}

func compare(t *testing.T, got []string, want ...string) {
	t.Helper()
	if a, b := strings.Join(got, "\n  "), strings.Join(want, "\n  "); a != b {
		t.Errorf("got\n  %s\nwant\n  %s", a, b)
	}
}

// Of returns plugins that only say what they can do.
func (twoPlugins) Of(pv *corev1.PersistentVolume) *Plugin {
	recycle := func(context.Context, *corev1.PersistentVolume, func(string, string)) error { return nil }
	switch {
	case pv.Spec.HostPath != nil:
		return &Plugin{Name: "kubernetes.io/host-path", Recycle: recycle,
			Delete: func(context.Context, *corev1.PersistentVolume) error { return nil },
			Provision: func(context.Context, *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
				return &corev1.PersistentVolume{}, nil
			}}
	case pv.Spec.NFS != nil:
		return &Plugin{Name: "kubernetes.io/nfs", Recycle: recycle}
	}
	return nil
}
