package persistentvolumebinder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

func TestWhoProvisions(t *testing.T) {
	for name, tc := range map[string]struct {
		class  *storagev1.StorageClass
		by     string
		inTree bool
		failed string
	}{
		"there is no such class":              {nil, "", false, `storageclass.storage.k8s.io "fast" not found`},
		"a plugin that was migrated":          {class("fast", "kubernetes.io/gce-pd"), "pd.csi.storage.gke.io", false, ""},
		"somebody outside":                    {class("fast", "csi.example.com"), "csi.example.com", false, ""},
		"nobody":                              {class("fast", "kubernetes.io/no-provisioner"), "", false, "no volume plugin matched name: kubernetes.io/no-provisioner"},
		"a plugin that does not":              {class("fast", "kubernetes.io/nfs"), "", false, "no provisionable volume plugin matched"},
		"a plugin that does":                  {class("fast", "kubernetes.io/host-path"), "kubernetes.io/host-path", true, ""},
		"a plugin that is gone from the tree": {class("fast", "kubernetes.io/rbd"), "", false, "no volume plugin matched name: kubernetes.io/rbd"},
	} {
		got := provisioningOf(observedClaim{claim: claim("c", wantsClass("fast")), class: tc.class, plugins: twoPlugins{}})
		if got.by != tc.by || (got.plugin != nil) != tc.inTree || got.failed != tc.failed {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestAProvisioningThatCannotBeginIsToldEachTime(t *testing.T) {
	o := observedClaim{claim: claim("c", wantsClass("fast")), plugins: twoPlugins{}, provisions: true}
	got, _ := played(planClaim(o, noon))
	compare(t, got, `tell c: Warning ProvisioningFailed storageclass.storage.k8s.io "fast" not found`)
	o.quiet = true
	got, _ = played(planClaim(o, noon))
	compare(t, got)
}

func TestAMigratedProvisionerReplacesTheOldName(t *testing.T) {
	o := observedClaim{claim: claim("c", wantsClass("fast"), says(volumehelpers.AnnStorageProvisioner, "kubernetes.io/aws-ebs"), says(volumehelpers.AnnMigratedTo, "ebs.csi.aws.com")),
		class: class("fast", "kubernetes.io/aws-ebs"), plugins: twoPlugins{}, provisions: true, quiet: true}
	got, _ := played(planClaim(o, noon))
	compare(t, got, "write claim c with  {ebs.csi.aws.com,ebs.csi.aws.com} fast")
}

func TestAnInTreeProvisioningIsStarted(t *testing.T) {
	p := planClaim(observedClaim{claim: claim("c", wantsClass("fast")), class: class("fast", "kubernetes.io/host-path"), plugins: twoPlugins{}, provisions: true}, noon)
	got := p.Note(nil).(outcome)
	if got.start == nil || got.start.String() != "provision-ns/c[uid-c]" || got.provisioning != "kubernetes.io/host-path" {
		t.Errorf("got %+v", got)
	}
}

func TestWhatAPluginDoesNotProvision(t *testing.T) {
	able, disabled := &Plugin{Name: "p"}, &Plugin{Name: "p", Disabled: "it is off"}
	options := class("fast", "p", func(c *storagev1.StorageClass) { c.MountOptions = []string{"ro"} })
	for name, tc := range map[string]struct {
		class  *storagev1.StorageClass
		plugin *Plugin
		want   string
	}{
		"all is well":                {class("fast", "p"), able, ""},
		"options are not understood": {options, able, `Mount options are not supported by the provisioner but StorageClass "fast" has mount options [ro]`},
		"it is off":                  {class("fast", "p"), disabled, "Failed to create provisioner: it is off"},
		"options are looked at first": {options, disabled,
			`Mount options are not supported by the provisioner but StorageClass "fast" has mount options [ro]`},
	} {
		if got := cannotProvision(tc.class, tc.plugin); got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	const filled = `plugin "p" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource`
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  string
	}{
		"an empty volume": {claim("c"), ""},
		"a copy":          {claim("c", func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSource = &corev1.TypedLocalObjectReference{} }), filled},
		"a copy by reference": {claim("c", func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSourceRef = &corev1.TypedObjectReference{} }),
			filled},
	} {
		if got := cannotFill(tc.claim, able); got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
