package persistentvolumebinder

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

// bindInFull are the four writes of a bind.
func bindInFull(volume, claim, volumeMarks, claimMarks, class string) []string {
	return []string{
		"write volume " + volume + " of " + claim + "[uid-" + claim + "] " + volumeMarks,
		"write volume " + volume + " Bound",
		"write claim " + claim + " with " + volume + " " + claimMarks + " " + class,
		"write claim " + claim + " Bound 10Gi [ReadWriteOnce] -",
	}
}

const (
	noClass = "tell c: Normal FailedBinding no persistent volumes available for this claim and no storage class is set"
	first   = "tell c: Normal WaitForFirstConsumer waiting for first consumer to be created before binding"
	taken   = `tell c: Warning FailedBinding volume "v" already bound to a different claim.`
	asked   = "tell c: Normal ExternalProvisioning Waiting for a volume to be created either by the external provisioner 'csi.example.com' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
)

func TestAClaimThatWasNeverBound(t *testing.T) {
	immediate := class("fast", "csi.example.com")
	waiting := class("fast", "csi.example.com", waitsForPods)
	annotated := says(volumehelpers.AnnStorageProvisioner, "csi.example.com")
	lost := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }
	for name, tc := range map[string]struct {
		o    observedClaim
		want []string
	}{
		"a free volume matches":                                 {observedClaim{claim: claim("c"), volume: volume("v")}, bindInFull("v", "c", "{b}", "{b,c}", "-")},
		"a volume matches that names it":                        {observedClaim{claim: claim("c"), volume: volume("v", of("c", ""))}, bindInFull("v", "c", "{}", "{b,c}", "-")},
		"none matches, it has no class, and there is a default": {observedClaim{claim: claim("c"), fallback: class("fast", "p")}, []string{"write claim c with  {} fast"}},
		"no class is a choice":                                  {observedClaim{claim: claim("c", wantsClass("")), fallback: class("fast", "p")}, []string{noClass}},
		"none matches, and no class":                            {observedClaim{claim: claim("c")}, []string{noClass}},
		"so it was lost":                                        {observedClaim{claim: claim("c", lost)}, []string{noClass, "write claim c Pending  [] -"}},
		"a quiet claim gets no event":                           {observedClaim{claim: claim("c"), quiet: true}, nil},
		"it waits for a pod":                                    {observedClaim{claim: claim("c", wantsClass("fast")), class: waiting}, []string{first}},
		"it waits for the scheduler":                            {observedClaim{claim: claim("c", wantsClass("fast")), class: waiting, unscheduled: []string{"a"}}, []string{"tell c: Normal WaitForPodScheduled waiting for pod a to be scheduled"}},
		"it waits for the scheduler, twice":                     {observedClaim{claim: claim("c", wantsClass("fast")), class: waiting, unscheduled: []string{"a", "b"}}, []string{"tell c: Normal WaitForPodScheduled waiting for pods a,b to be scheduled"}},
		"a node is chosen": {observedClaim{claim: claim("c", wantsClass("fast"), says(volumehelpers.AnnSelectedNode, "n")), class: waiting, provisions: true},
			[]string{"write claim c with  {csi.example.com,csi.example.com} fast", asked}},
		"it is provisioned outside":             {observedClaim{claim: claim("c", wantsClass("fast")), class: immediate, provisions: true}, []string{"write claim c with  {csi.example.com,csi.example.com} fast", asked}},
		"the event is sent each time":           {observedClaim{claim: claim("c", wantsClass("fast"), annotated), class: immediate, provisions: true}, []string{asked}},
		"but not without a reason":              {observedClaim{claim: claim("c", wantsClass("fast"), annotated), class: immediate, provisions: true, quiet: true}, nil},
		"nothing is provisioned":                {observedClaim{claim: claim("c", wantsClass("fast"), lost), class: immediate}, nil},
		"the volume that it names is not there": {observedClaim{claim: claim("c", wantsVolume("v"))}, nil},
		"and it was lost":                       {observedClaim{claim: claim("c", wantsVolume("v"), lost)}, []string{"write claim c Pending  [] -"}},
		"and its status has a size": {observedClaim{claim: claim("c", wantsVolume("v"), func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity = c.Spec.Resources.Requests })},
			[]string{"write claim c Pending  [] -"}},
		"and its status has access modes": {observedClaim{claim: claim("c", wantsVolume("v"), func(c *corev1.PersistentVolumeClaim) { c.Status.AccessModes = c.Spec.AccessModes })},
			[]string{"write claim c Pending  [] -"}},
		"and its status has attributes": {observedClaim{claim: claim("c", wantsVolume("v"), func(c *corev1.PersistentVolumeClaim) { c.Status.CurrentVolumeAttributesClassName = &c.Name })},
			[]string{"write claim c Pending  [] -"}},
		"the volume that it names does not suit": {observedClaim{claim: claim("c", wantsVolume("v")), volume: volume("v", holds("1Gi"))},
			[]string{`tell c: Warning VolumeMismatch Cannot bind to requested volume "v": requested PV is too small`}},
		"the volume that it names suits": {observedClaim{claim: claim("c", wantsVolume("v")), volume: volume("v")}, bindInFull("v", "c", "{b}", "{c}", "-")},
		"selector and phase of that are no matter": {observedClaim{claim: claim("c", wantsVolume("v"), selects("a", "b")), volume: volume("v", in(corev1.VolumePending))},
			bindInFull("v", "c", "{b}", "{c}", "-")},
		"both name each other, and nothing is checked": {observedClaim{claim: claim("c", wantsVolume("v"), wants("99Gi"), wantsBlock), volume: volume("v", of("c", ""), ofClass("x"))},
			bindInFull("v", "c", "{}", "{c}", "-")},
		"the volume has another claim":             {observedClaim{claim: claim("c", wantsVolume("v")), volume: volume("v", of("d", "uid-d"))}, []string{taken}},
		"the volume has an earlier claim":          {observedClaim{claim: claim("c", wantsVolume("v")), volume: volume("v", of("c", "uid-old"))}, []string{taken}},
		"so it has, and the controller had chosen": {observedClaim{claim: claim("c", wantsVolume("v"), says(volumehelpers.AnnBoundByController, yes)), volume: volume("v", of("d", "uid-d"))}, []string{taken}},
		"another key works on the volume":          {observedClaim{claim: claim("c"), busy: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.plugins = twoPlugins{}
			got, last := played(planClaim(tc.o, noon))
			compare(t, got, tc.want...)
			if chosen := tc.o.claim.Annotations[volumehelpers.AnnBoundByController] != ""; (last.Err != nil) != chosen || last.Why == "" {
				t.Errorf("error %v, because %q", last.Err, last.Why)
			}
		})
	}
}

func TestAClaimThatWasBoundOnce(t *testing.T) {
	const (
		noReference = "tell c: Warning ClaimLost Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
		noVolume    = "tell c: Warning ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!"
		misbound    = "tell c: Warning ClaimMisbound Two claims are bound to the same volume, this one is bound incorrectly"
		isLost      = "write claim c Lost  [] -"
	)
	whole := volume("v", of("c", "uid-c"), in(corev1.VolumeBound))
	for name, tc := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		volume *corev1.PersistentVolume
		want   []string
	}{
		"all is well":                                             {claim("c", boundOnce("v")), whole, nil},
		"it names no volume":                                      {claim("c", boundOnce("")), nil, []string{isLost, noReference}},
		"its volume is gone":                                      {claim("c", boundOnce("v")), nil, []string{isLost, noVolume}},
		"it has its event already":                                {claim("c", boundOnce("v"), lostPhase), nil, nil},
		"somebody has written into its status":                    {claim("c", boundOnce("v"), lostPhase, func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity = c.Spec.Resources.Requests }), nil, nil},
		"its volume has no claim":                                 {claim("c", boundOnce("v")), volume("v"), []string{"write volume v of c[uid-c] {b}", "write volume v Bound"}},
		"its volume is back":                                      {claim("c", boundOnce("v"), lostPhase), volume("v", attributes("gold")), []string{"write volume v of c[uid-c] {b}", "write volume v Bound", "write claim c Bound 10Gi [ReadWriteOnce] -"}},
		"its volume is back, as it was":                           {claim("c", boundOnce("v"), lostPhase), whole, []string{"write claim c Bound 10Gi [ReadWriteOnce] -"}},
		"its volume has another claim":                            {claim("c", boundOnce("v")), volume("v", of("d", "uid-d")), []string{isLost, misbound}},
		"its volume names no UID":                                 {claim("c", boundOnce("v")), volume("v", of("c", "")), []string{isLost, misbound}},
		"its volume has other access modes now":                   {claim("c", boundOnce("v")), volume("v", of("c", "uid-c"), in(corev1.VolumeBound), access(corev1.ReadWriteMany)), []string{"write claim c Bound 10Gi [ReadWriteMany] -"}},
		"its volume has another size, which is for others to say": {claim("c", boundOnce("v")), volume("v", of("c", "uid-c"), in(corev1.VolumeBound), holds("20Gi")), nil},
		"its provisioner is migrated": {claim("c", boundOnce("v"), says(volumehelpers.AnnBetaStorageProvisioner, "kubernetes.io/aws-ebs")), whole,
			[]string{"write claim c with v {c,ebs.csi.aws.com,kubernetes.io/aws-ebs} -"}},
		"its provisioner is not": {claim("c", boundOnce("v"), says(volumehelpers.AnnStorageProvisioner, "csi.example.com"), says(volumehelpers.AnnMigratedTo, "x")), whole,
			[]string{"write claim c with v {c,csi.example.com} -"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, last := played(planClaim(observedClaim{claim: tc.claim, volume: tc.volume, plugins: twoPlugins{}}, noon))
			compare(t, got, tc.want...)
			if last.Err != nil || last.Why == "" {
				t.Errorf("error %v, because %q", last.Err, last.Why)
			}
		})
	}
}

func TestWhatTheStatusOfABoundClaimSays(t *testing.T) {
	last := func(c *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) string {
		t.Helper()
		got, p := played(planClaim(observedClaim{claim: c, volume: pv}, noon))
		if p.Err != nil {
			return p.Err.Error()
		}
		return got[len(got)-1]
	}
	for name, tc := range map[string]struct{ got, want string }{
		"the size before it was expanded":     {last(claim("c"), volume("v", noted(preResizeCapacity, "7Gi"))), "write claim c Bound 7Gi [ReadWriteOnce] -"},
		"which is not read if it is negative": {last(claim("c"), volume("v", noted(preResizeCapacity, "-1Gi"))), "write claim c Bound 10Gi [ReadWriteOnce] -"},
		"which is not read if it is broken":   {last(claim("c"), volume("v", noted(preResizeCapacity, "much"))), "write claim c Bound 10Gi [ReadWriteOnce] -"},
		"the attributes of the volume":        {last(claim("c"), volume("v", attributes("gold"))), "write claim c Bound 10Gi [ReadWriteOnce] gold"},
		"a volume without a size is no volume": {last(claim("c"), volume("v", func(pv *corev1.PersistentVolume) { pv.Spec.Capacity = nil })),
			"bind volume v to claim ns/c: the volume has no storage capacity"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %s", name, tc.got)
		}
	}
}

func TestTheDefaultClass(t *testing.T) {
	beta := class("beta", "p")
	beta.Annotations = map[string]string{defaultMarks[1]: "true"}
	off := class("off", "p")
	off.Annotations = map[string]string{defaultMarks[0]: "True"}
	for name, tc := range map[string]struct {
		classes []*storagev1.StorageClass
		want    string
	}{
		"there is none":           {[]*storagev1.StorageClass{class("a", "p"), off}, ""},
		"the newest of several":   {[]*storagev1.StorageClass{class("a", "p", byDefault(noon)), class("b", "p", byDefault(noon.Add(time.Second))), class("c", "p")}, "b"},
		"then the first by name":  {[]*storagev1.StorageClass{class("b", "p", byDefault(noon)), class("a", "p", byDefault(noon))}, "a"},
		"the old mark is one too": {[]*storagev1.StorageClass{beta}, "beta"},
	} {
		got := ""
		if class := defaultOf(tc.classes); class != nil {
			got = class.Name
		}
		if got != tc.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestABetaAnnotationIsAClass(t *testing.T) {
	c := claim("c", says(corev1.BetaStorageClassAnnotation, ""))
	if !volumehelpers.PersistentVolumeClaimHasClass(c) || classOf(c) != "" {
		t.Error("an empty annotation is a choice")
	}
	c = claim("c", says(corev1.BetaStorageClassAnnotation, "old"), wantsClass("new"))
	if classOf(c) != "old" {
		t.Errorf("got %s", classOf(c))
	}
}
