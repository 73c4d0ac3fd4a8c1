package why

import (
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

func TestRequestsForCertificates(t *testing.T) {
	request := func(certificate string, conditions ...certificatesv1.RequestConditionType) finding {
		csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: "example.com/serving", Username: "jane"}}
		csr.Status.Certificate = []byte(certificate)
		for _, c := range conditions {
			csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: c, Reason: "Said", Message: "because"})
		}
		return judgeSigning(csr)
	}
	check(t, map[string]judgement{
		"pending":            {request(""), Waiting, "nobody has approved or denied it yet"},
		"approved":           {request("", certificatesv1.CertificateApproved), Waiting, "it is approved, and waits for signer example.com/serving to issue the certificate"},
		"issued":             {request("PEM", certificatesv1.CertificateApproved), Complete, "its certificate has been issued"},
		"denied":             {request("", certificatesv1.CertificateDenied), Blocked, "it has been denied (Said): because"},
		"failed":             {request("", certificatesv1.CertificateApproved, certificatesv1.CertificateFailed), Blocked, "its signer does not issue the certificate (Said): because"},
		"issued, and denied": {request("PEM", certificatesv1.CertificateDenied), Blocked, "it has been denied (Said): because"},
	})
	if f := request("", certificatesv1.CertificateApproved); !slices.Equal(f.facts, []string{"signer example.com/serving", "asked for by jane", "Approved (Said)"}) {
		t.Errorf("facts %q", f.facts)
	}
}

// resourceClaim has devices if it is allocated, and consumers.
func resourceClaim(allocated bool, consumers ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: meta("gpu", nil, ""), Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: make([]resourcev1.DeviceRequest, 1)}}}
	if allocated {
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Request: "one", Driver: "gpu.example.com", Pool: "node-a", Device: "gpu-0"}}}}
	}
	for _, name := range consumers {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: name})
	}
	return c
}

func TestClaimsOfDevices(t *testing.T) {
	check(t, map[string]judgement{
		"unallocated":   {judgeDevices(resourceClaim(false)), Waiting, "its devices are not allocated: the scheduler does that when it finds a node for a pod that uses it"},
		"unreserved":    {judgeDevices(resourceClaim(true)), Waiting, "its devices are allocated, and nobody has reserved them"},
		"in use":        {judgeDevices(resourceClaim(true, "b", "a")), Complete, "its devices are allocated, and reserved for a, b"},
		"in use by six": {judgeDevices(resourceClaim(true, "a", "b", "c", "d", "e", "f")), Complete, "its devices are allocated, and reserved for a, b, c, d, e and 1 more"},
	})
	if f := judgeDevices(resourceClaim(true, "a")); !slices.Equal(f.facts, []string{"1 request", "request one has device gpu-0 of gpu.example.com, pool node-a"}) {
		t.Errorf("facts %q", f.facts)
	}
}

// attachment is one of volume v to a node.
func attachment(node string, change ...func(*storagev1.VolumeAttachment)) *storagev1.VolumeAttachment {
	va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + node}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: "csi.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("v")}}}
	for _, f := range change {
		f(va)
	}
	return va
}

func attached(va *storagev1.VolumeAttachment) { va.Status.Attached = true }

func attachError(va *storagev1.VolumeAttachment) {
	va.Status.AttachError = &storagev1.VolumeError{Time: *ago(time.Minute), Message: "no slot is free"}
}

func TestAttachments(t *testing.T) {
	leaving := func(va *storagev1.VolumeAttachment) { va.DeletionTimestamp = ago(time.Minute) }
	detachError := func(va *storagev1.VolumeAttachment) { va.Status.DetachError = &storagev1.VolumeError{Message: "busy"} }
	inline := func(va *storagev1.VolumeAttachment) { va.Spec.Source.PersistentVolumeName = nil }
	check(t, map[string]judgement{
		"new":               {judgeAttachment(attachment("n")), Waiting, "it waits for csi.example.com to attach volume v to node n"},
		"attached":          {judgeAttachment(attachment("n", attached)), Complete, "volume v is attached to node n"},
		"of a pod":          {judgeAttachment(attachment("n", attached, inline)), Complete, "the volume is attached to node n"},
		"in trouble":        {judgeAttachment(attachment("n", attachError)), Blocked, "volume v cannot be attached to node n (last tried at 2026-06-01T11:59:00Z): no slot is free"},
		"over an old error": {judgeAttachment(attachment("n", attached, attachError)), Complete, "volume v is attached to node n"},
		"leaving":           {judgeAttachment(attachment("n", attached, leaving)), Waiting, "it waits for csi.example.com to detach volume v from node n"},
		"stuck":             {judgeAttachment(attachment("n", attached, leaving, detachError)), Blocked, "volume v cannot be detached from node n: busy"},
	})
}

func TestTokenSecrets(t *testing.T) {
	secret := func(kind corev1.SecretType, annotations, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s", Annotations: annotations, Labels: labels}, Type: kind, Data: map[string][]byte{"token": []byte("hidden")}}
	}
	named := map[string]string{corev1.ServiceAccountNameKey: "web"}
	filled := map[string]string{corev1.ServiceAccountNameKey: "web", corev1.ServiceAccountUIDKey: "1"}
	const token = corev1.SecretTypeServiceAccountToken
	check(t, map[string]judgement{
		"empty":   {judgeToken(secret(token, named, nil)), Waiting, "it waits to be given a token of service account web"},
		"filled":  {judgeToken(secret(token, filled, nil)), Complete, "it is for a token of service account web"},
		"retired": {judgeToken(secret(token, filled, map[string]string{tokenInvalidSince: "2026-05-01"})), Waiting, "its token is invalid since 2026-05-01, because nobody has used it, and it is to be deleted"},
	})
	for name, tc := range map[string]struct {
		held   *corev1.Secret // what the cache of some Secrets has
		judged bool
	}{
		"a token":        {secret(token, filled, nil), true},
		"another Secret": {secret(corev1.SecretTypeOpaque, nil, nil), false},
		"not held":       {&corev1.Secret{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			some := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil)
			if err := some.Add(tc.held); err != nil {
				t.Fatal(err)
			}
			l := &look{World: &World{Caches: func(Kind) []Cache { return []Cache{{Indexer: some, Part: true}} }}, kinds: served, now: noon}
			all := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
			if f := l.judge(relative{secrets, "default", "s", all}, nil); (f.verdict == Complete) != tc.judged || f.verdict == Unknown == tc.judged {
				t.Errorf("%s: %s", f.verdict, f.sentence)
			}
		})
	}
}

// stored are the kinds of a pod that has volumes and devices.
var stored = KindsOf([]*metav1.APIResourceList{
	{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: "persistentvolumeclaims", SingularName: "persistentvolumeclaim", Kind: "PersistentVolumeClaim", Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: "persistentvolumes", SingularName: "persistentvolume", Kind: "PersistentVolume", Verbs: metav1.Verbs{"get"}},
	}},
	{GroupVersion: "storage.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "volumeattachments", Kind: "VolumeAttachment", Verbs: metav1.Verbs{"get"}}}},
	{GroupVersion: "resource.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "resourceclaims", Kind: "ResourceClaim", Namespaced: true, Verbs: metav1.Verbs{"get"}}}},
})

// startingPod is a pod with a volume and devices.
func startingPod(phase corev1.PodPhase, node string) *corev1.Pod {
	p := pod()
	p.ObjectMeta, p.Spec.NodeName, p.Status.Phase = meta("db", nil, ""), node, phase
	p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "one", ResourceClaimName: ptr.To("gpu")}, {Name: "two", ResourceClaimTemplateName: ptr.To("t")}}
	p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "two", ResourceClaimName: ptr.To("made")}, {Name: "three"}}
	return p
}

func TestAPodThatStartsIsShownWithWhatItNeeds(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta("data", nil, ""), Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	for name, tc := range map[string]struct {
		kind, name string
		objects    []metav1.Object
		says       string
		shape      string
	}{
		"its volume cannot be attached": {"pod", "db",
			[]metav1.Object{startingPod(corev1.PodPending, "n"), resourceClaim(true, "db"), attachment("n", attachError), attachment("m", attached)},
			"Pod default/db is blocked at VolumeAttachment csi-n: volume v cannot be attached to node n (last tried at 2026-06-01T11:59:00Z): no slot is free.",
			"0 Pod db progressing, 1 VolumeAttachment csi-n blocked, 1 PersistentVolumeClaim data complete, 2 PersistentVolume v complete, " +
				"3 VolumeAttachment csi-m complete, 1 ResourceClaim made unknown, 1 ResourceClaim gpu complete"},
		"it has no node": {"pod", "db",
			[]metav1.Object{startingPod(corev1.PodPending, ""), resourceClaim(false), attachment("m", attached)},
			"Pod default/db is waiting: it waits for the scheduler to choose a node.",
			"0 Pod db waiting, 1 PersistentVolumeClaim data complete, 2 PersistentVolume v complete, 3 VolumeAttachment csi-m complete, " +
				"1 ResourceClaim made unknown, 1 ResourceClaim gpu waiting"},
		"it runs": {"pod", "db", []metav1.Object{startingPod(corev1.PodRunning, "n"), attachment("n", attached)},
			"Pod default/db is progressing: it runs on node n and is not ready.", "0 Pod db progressing"},
		"a volume that is asked for": {"persistentvolumes", "v", []metav1.Object{attachment("n"), attachment("m", attached)},
			"PersistentVolume v is waiting at VolumeAttachment csi-n: it waits for csi.example.com to attach volume v to node n.",
			"0 PersistentVolume v complete, 1 VolumeAttachment csi-n waiting, 1 VolumeAttachment csi-m complete"},
		"an attachment that is asked for": {"volumeattachments", "csi-n", []metav1.Object{attachment("n", attached)},
			"VolumeAttachment csi-n is complete: volume v is attached to node n.", "0 VolumeAttachment csi-n complete"},
		"devices that are asked for": {"resourceclaims", "gpu", []metav1.Object{resourceClaim(false)},
			"ResourceClaim default/gpu is waiting: its devices are not allocated: the scheduler does that when it finds a node for a pod that uses it.", "0 ResourceClaim gpu waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, append(tc.objects, claim, volume)...)
			w.Kinds = func() *Kinds { return stored }
			a := ask(t, w, tc.kind, tc.name)
			if a.Sentence != tc.says || shape(a) != tc.shape {
				t.Errorf("%s\n%s\nwant %s\n%s", a.Sentence, shape(a), tc.says, tc.shape)
			}
		})
	}
}

func TestOfACustomResourceItIsNotSaidThatItIsComplete(t *testing.T) {
	custom := &metav1.PartialObjectMetadata{ObjectMeta: meta("mine", nil, "")}
	a := ask(t, newWorld(t, nil, custom), "deployments.example.com", "mine")
	if want := "Whether Deployment default/mine is as it should be is not known: it exists, and no controller here reads more of it than its metadata."; a.Sentence != want || a.Verdict != Unknown {
		t.Errorf("%s: %s\nwant %s", a.Verdict, a.Sentence, want)
	}
}
