package persistentvolumeexpander

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func storage(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

// claim is a bound claim that asks for one size and has another.
func claim(request, capacity string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data", UID: "c", ResourceVersion: "7"}}
	c.Spec.VolumeName = "pv"
	c.Spec.Resources.Requests = storage(request)
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: storage(capacity)}
	return c
}

// volume is one that belongs to the claim.
func volume(size string, source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "v", ResourceVersion: "3"}}
	v.Spec = corev1.PersistentVolumeSpec{
		Capacity: storage(size), PersistentVolumeSource: source,
		ClaimRef: &corev1.ObjectReference{Namespace: "team", Name: "data", UID: "c"},
	}
	return v
}

func preResize(v *corev1.PersistentVolume) *corev1.PersistentVolume {
	v.Annotations = map[string]string{PreResize: "1Gi"}
	return v
}

var (
	csi  = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d"}}
	flex = corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "example/flex"}}
	ebs  = corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}
)

// said is what a plan does besides writing: its events and its error.
func said(p act.Plan) (events, err string) {
	var all []string
	for _, stage := range p.Stages {
		for _, step := range stage.Steps {
			if e, is := step.(act.Event); is {
				all = append(all, e.Type+" "+e.Reason+" "+e.Message)
			}
		}
	}
	return strings.Join(all, "; "), fmt.Sprint(errors.Join(p.Err, p.Terminal))
}

func TestWhoExpands(t *testing.T) {
	const waits = "Normal ExternalExpanding waiting for an external controller to expand this PVC"
	for name, source := range map[string]corev1.PersistentVolumeSource{
		"csi": csi, "nfs": {NFS: &corev1.NFSVolumeSource{}}, "iscsi": {ISCSI: &corev1.ISCSIPersistentVolumeSource{}}, "fc": {FC: &corev1.FCVolumeSource{}},
		"hostPath": {HostPath: &corev1.HostPathVolumeSource{}}, "local": {Local: &corev1.LocalVolumeSource{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(observed{claim: claim("2Gi", "1Gi"), volume: volume("1Gi", source)}, noon)
			if events, err := said(p); events != waits || err != "<nil>" || len(p.Stages[0].Steps) != 1 {
				t.Errorf("%s, %s: %s", events, err, fixture.Planned(p))
			}
		})
	}
	for plugin, tc := range map[string]struct {
		source corev1.PersistentVolumeSource
		driver string
	}{
		"kubernetes.io/aws-ebs":         {ebs, "ebs.csi.aws.com"},
		"kubernetes.io/gce-pd":          {corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}}, "pd.csi.storage.gke.io"},
		"kubernetes.io/cinder":          {corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{}}, "cinder.csi.openstack.org"},
		"kubernetes.io/azure-disk":      {corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{}}, "disk.csi.azure.com"},
		"kubernetes.io/azure-file":      {corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{}}, "file.csi.azure.com"},
		"kubernetes.io/vsphere-volume":  {corev1.PersistentVolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}}, "csi.vsphere.vmware.com"},
		"kubernetes.io/portworx-volume": {corev1.PersistentVolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{}}, "pxd.portworx.com"},
	} {
		t.Run(plugin, func(t *testing.T) {
			p := plan(observed{claim: claim("2Gi", "1Gi"), volume: volume("1Gi", tc.source)}, noon)
			events, err := said(p)
			if events != "Normal ExternalExpanding CSI migration enabled for "+plugin+"; waiting for external resizer to expand the pvc" || err != "<nil>" {
				t.Errorf("%s, %s", events, err)
			}
			patch := p.Stages[0].Steps[1].(act.Patch)
			want := `{"metadata":{"annotations":{"volume.kubernetes.io/storage-resizer":"` + tc.driver + `"},"resourceVersion":"7","uid":"c"}}`
			if string(patch.Data) != want || patch.Subresource != "status" {
				t.Errorf("patches %s: %s", patch.Subresource, patch.Data)
			}
		})
	}
}

func TestWhenNothingIsWritten(t *testing.T) {
	marked := claim("2Gi", "1Gi")
	marked.Annotations = map[string]string{Resizer: "ebs.csi.aws.com"}
	lost := claim("2Gi", "1Gi")
	lost.Status.Phase = corev1.ClaimLost
	elsewhere, other, nobodys := volume("1Gi", flex), volume("1Gi", flex), volume("1Gi", flex)
	elsewhere.Spec.ClaimRef.Namespace, other.Spec.ClaimRef.UID, nobodys.Spec.ClaimRef = "away", "x", nil
	const none, notIts = "<nil>", "volume pv: it belongs to no claim, or to another one"
	const migrated = "Normal ExternalExpanding CSI migration enabled for kubernetes.io/aws-ebs; waiting for external resizer to expand the pvc"
	for name, tc := range map[string]struct {
		claim       *corev1.PersistentVolumeClaim
		volume      *corev1.PersistentVolume
		events, err string
	}{
		"a claim that has what it asks for":      {claim("1Gi", "1Gi"), volume("1Gi", csi), "", none},
		"a FlexVolume that is as large as asked": {claim("1Gi", "1Gi"), volume("1Gi", flex), "", none},
		"a claim that has more":                  {claim("1Gi", "2Gi"), volume("2Gi", ebs), "", none},
		"a claim that is not bound any more":     {lost, nil, "", none},
		"a volume that is not there":             {claim("2Gi", "1Gi"), nil, "", "volume pv: it is not there"},
		"a volume that belongs to nobody":        {claim("2Gi", "1Gi"), nobodys, "", notIts},
		"one of another claim of that name":      {claim("2Gi", "1Gi"), other, "", notIts},
		"one of a claim in another namespace":    {claim("2Gi", "1Gi"), elsewhere, "", notIts},
		"a resizer that is named already":        {marked, volume("1Gi", ebs), migrated, none},
		"an annotated CSI volume, sizes equal":   {claim("1Gi", "1Gi"), preResize(volume("1Gi", csi)), "Normal ExternalExpanding waiting for an external controller to expand this PVC", none},
		"a node that has yet to expand":          {expanding(claim("2Gi", "1Gi"), "2Gi", corev1.PersistentVolumeClaimNodeResizePending), preResize(volume("2Gi", flex)), "", none},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(observed{claim: tc.claim, volume: tc.volume}, noon)
			if events, err := said(p); events != tc.events || err != tc.err || strings.Contains(fixture.Planned(p), "patch") {
				t.Errorf("%q, %q: %s", events, err, fixture.Planned(p))
			}
			if p.Err != nil {
				t.Errorf("it is retried, and then the event comes twice: %v", p.Err)
			}
		})
	}
}

func TestWhenTheNodeIsDone(t *testing.T) {
	const done = "the node has expanded the file system"
	for name, tc := range map[string]struct {
		request, capacity, offers string
		done                      bool
	}{
		"the claim has all":          {"2Gi", "2Gi", "2Gi", true},
		"it asks for more":           {"3Gi", "2Gi", "2Gi", false},
		"its volume offers more":     {"2Gi", "2Gi", "3Gi", false},
		"it has more than it wanted": {"1Gi", "2Gi", "2Gi", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(observed{claim: claim(tc.request, tc.capacity), volume: preResize(volume(tc.offers, flex))}, noon)
			if (p.Why == done) != tc.done {
				t.Errorf("%s because %s", fixture.Planned(p), p.Why)
			}
		})
	}
}

func TestADriverThatIsNotKnownIsTold(t *testing.T) {
	p := untranslated(observed{claim: claim("2Gi", "1Gi")}, errors.New("none"))
	if events, err := said(p); events != "Warning ExternalExpanding error getting CSI driver name for pvc team/data, with error none" || err != "none" {
		t.Errorf("%s, %s", events, err)
	}
}

func TestWhatWakesAClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		before, now *corev1.PersistentVolumeClaim
		want        bool
	}{
		"it asks for more":  {claim("1Gi", "1Gi"), claim("2Gi", "1Gi"), true},
		"it has more":       {claim("2Gi", "1Gi"), claim("2Gi", "2Gi"), true},
		"it is bound":       {claim("2Gi", "0"), claim("2Gi", "1Gi"), true},
		"it asks for less":  {claim("2Gi", "1Gi"), claim("1Gi", "1Gi"), false},
		"nothing is larger": {claim("2Gi", "1Gi"), claim("2Gi", "1Gi"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := grew(tc.before, tc.now); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// expanding is a claim whose expansion is under way.
func expanding(c *corev1.PersistentVolumeClaim, alloc string, state corev1.ClaimResourceStatus) *corev1.PersistentVolumeClaim {
	if alloc != "" {
		c.Status.AllocatedResources = storage(alloc)
	}
	if state != "" {
		c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: state}
	}
	return c
}

func TestTheSizeThatIsAimedAt(t *testing.T) {
	const (
		inProgress   = corev1.PersistentVolumeClaimControllerResizeInProgress
		infeasible   = corev1.PersistentVolumeClaimControllerResizeInfeasible
		nodePending  = corev1.PersistentVolumeClaimNodeResizePending
		nodeProgress = corev1.PersistentVolumeClaimNodeResizeInProgress
		nodeCannot   = corev1.PersistentVolumeClaimNodeResizeInfeasible
	)
	for _, tc := range []struct {
		offers, alloc string
		state         corev1.ClaimResourceStatus
		want          string // the claim asks for 2Gi
	}{
		{"1Gi", "3Gi", inProgress, "0 3Gi"}, {"1Gi", "", inProgress, "0 2Gi"},
		{"1Gi", "3Gi", nodePending, "0 3Gi"}, {"1Gi", "", nodePending, "0 2Gi"},
		{"1Gi", "3Gi", nodeProgress, "0 3Gi"}, {"1Gi", "", nodeProgress, "0 2Gi"},
		{"1Gi", "3Gi", nodeCannot, "0 3Gi"}, {"1Gi", "", nodeCannot, "0 2Gi"},
		{"1Gi", "3Gi", "", "0 2Gi"}, {"1Gi", "", "", "0 2Gi"},
		{"1Gi", "3Gi", infeasible, "0 2Gi"}, {"1Gi", "", infeasible, "0 2Gi"},
		{"2Gi", "3Gi", nodePending, "1 3Gi"}, {"2Gi", "", nodeProgress, "1 2Gi"},
		{"2Gi", "3Gi", nodeCannot, "2 3Gi"}, {"3Gi", "", nodeCannot, "2 2Gi"},
		{"2Gi", "3Gi", inProgress, "0 3Gi"}, {"2Gi", "", inProgress, "0 2Gi"},
		{"2Gi", "3Gi", infeasible, "0 3Gi"}, {"2Gi", "", infeasible, "0 2Gi"},
		{"2Gi", "3Gi", "", "0 3Gi"}, {"2Gi", "", "", "0 2Gi"},
	} {
		t.Run(fmt.Sprintf("volume %s, allocated %s, %s", tc.offers, tc.alloc, tc.state), func(t *testing.T) {
			whose, size := aim(expanding(claim("2Gi", "1Gi"), tc.alloc, tc.state), volume(tc.offers, flex))
			if got := fmt.Sprint(int(whose), " ", &size); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNoSizeIsLessThanTheClaimHas(t *testing.T) {
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  string
	}{
		"it asks for less than it has":        {claim("1Gi", "2Gi"), "2Gi"},
		"so did the expansion that has begun": {expanding(claim("4Gi", "2Gi"), "1Gi", corev1.PersistentVolumeClaimControllerResizeInProgress), "2Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, size := aim(tc.claim, preResize(volume("3Gi", flex))); size.String() != tc.want {
				t.Errorf("got %s", &size)
			}
		})
	}
}

func TestWhatAClaimSaysOfItsExpansion(t *testing.T) {
	earlier, now := metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon)
	is := func(kind corev1.PersistentVolumeClaimConditionType, since metav1.Time, message string) corev1.PersistentVolumeClaimCondition {
		return corev1.PersistentVolumeClaimCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: since, Message: message}
	}
	const waits = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."
	before := expanding(claim("2Gi", "1Gi"), "", corev1.PersistentVolumeClaimControllerResizeInfeasible)
	before.Status.AllocatedResourceStatuses["other"] = "x"
	before.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
		is(corev1.PersistentVolumeClaimControllerResizeError, earlier, "no"), is("Mine", earlier, ""),
		is(corev1.PersistentVolumeClaimNodeResizeError, earlier, "no"), is(corev1.PersistentVolumeClaimFileSystemResizePending, earlier, ""),
	}
	unchanged := before.DeepCopy()

	begun := began(before, resource.MustParse("2Gi"), "example/flex", noon)
	want := claim("2Gi", "1Gi")
	want.Annotations = map[string]string{Resizer: "example/flex"}
	want.Status.AllocatedResources = storage("2Gi")
	want.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{"other": "x", "storage": "ControllerResizeInProgress"}
	want.Status.Conditions = []corev1.PersistentVolumeClaimCondition{is("Mine", earlier, ""), is(corev1.PersistentVolumeClaimResizing, now, "")}
	if diff := cmp.Diff(want, begun); diff != "" {
		t.Errorf("when it begins: %s", diff)
	}
	if again := began(begun, resource.MustParse("2Gi"), "example/flex", noon.Add(time.Hour)); cmp.Diff(begun, again) != "" {
		t.Errorf("begun twice: %s", cmp.Diff(begun, again))
	}

	waiting := waitsForNode(begun, noon.Add(time.Minute))
	want.Status.AllocatedResourceStatuses["storage"] = "NodeResizePending"
	want.Status.Conditions = append(want.Status.Conditions, is(corev1.PersistentVolumeClaimFileSystemResizePending, metav1.NewTime(noon.Add(time.Minute)), waits))
	if diff := cmp.Diff(want, waiting); diff != "" {
		t.Errorf("when the node is to go on: %s", diff)
	}

	over := ended(begun, resource.MustParse("2Gi"))
	want.Status.Capacity = storage("2Gi")
	delete(want.Status.AllocatedResourceStatuses, "storage")
	want.Status.Conditions = []corev1.PersistentVolumeClaimCondition{is("Mine", earlier, "")}
	if diff := cmp.Diff(want, over); diff != "" {
		t.Errorf("when a block device has its size: %s", diff)
	}
	if diff := cmp.Diff(unchanged, before); diff != "" {
		t.Errorf("the cached claim was changed: %s", diff)
	}
}

func TestAClaimThatIsAsItShouldBeIsNotPatched(t *testing.T) {
	c := claim("2Gi", "1Gi")
	if patch, err := claimPatch(c, c.DeepCopy(), act.Events{}); patch != nil || err != nil {
		t.Errorf("got %v, %v", patch, err)
	}
	mode := ptr.To(corev1.PersistentVolumeBlock)
	v := volume("2Gi", flex)
	v.Spec.VolumeMode = mode
	if p := (expansion{volume: v, size: resource.MustParse("2Gi"), now: noon}).grow(c); len(p.Stages) > 0 {
		t.Errorf("a volume that is large enough: %s", fixture.Planned(p))
	}
}
