package persistentvolumebinder

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// failedOf is how many failures of this provisioner are counted.
func failedOf(t *testing.T, provisioner string) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(operationErrors.WithLabelValues(provisioner, string(provisions)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAProvisionerThatCannotBeWrittenIsToldAndPauses(t *testing.T) {
	const driver = "unsaved.example.com"
	wanting := claim("c", wantsClass("fast"))
	c, rig := prepare(t, nil, []runtime.Object{class("fast", driver), wanting}, wanting)
	said := error(apierrors.NewInternalError(errors.New("no")))
	rig.Client.PrependReactor("update", "persistentvolumeclaims", func(ktesting.Action) (bool, runtime.Object, error) { return said != nil, nil, said })
	before := failedOf(t, driver)
	look := func(wait time.Duration, did, told string, failures float64) {
		t.Helper()
		rig.Clock.Step(wait)
		c.loud.Store(keyed("c"), true)
		rig.Client.ClearActions()
		if err := c.claims.Reconcile(t.Context(), keyed("c")).Err(); (err != nil) != strings.Contains(told, "Error saving") {
			t.Errorf("ended with %v", err)
		}
		if got := rig.Requests(); got != did {
			t.Errorf("did %q, want %q", got, did)
		}
		if got := rig.Told(); got != told {
			t.Errorf("told %q, want %q", got, told)
		}
		if got := failedOf(t, driver) - before; got != failures {
			t.Errorf("%v failures are counted, want %v", got, failures)
		}
	}
	const saving, write = "Warning ProvisioningFailed Error saving claim: Internal error occurred: no", "update persistentvolumeclaims"
	look(0, write, saving, 1)
	look(499*time.Millisecond, "", "", 1)
	look(time.Millisecond, write, saving, 2)
	look(999*time.Millisecond, "", "", 2)
	if refused := (act.Results{{Step: act.Update{Object: wanting}, Became: act.Refused, Err: said}}); !unsaved(wanting, refused).TerminalIf(said) {
		t.Error("it is retried at once")
	}
	said = nil
	look(time.Millisecond, write, "Normal ExternalProvisioning Waiting for a volume to be created either by the external provisioner '"+driver+
		"' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.", 2)
	if len(c.ledger.paused) > 0 {
		t.Error("it pauses still")
	}
}

func TestOnlyABindThatFailsIsAFailureToProvision(t *testing.T) {
	const plugin = "bindings.example.com"
	no := errors.New("no")
	marked := says(volumehelpers.AnnStorageProvisioner, "kubernetes.io/aws-ebs")
	for name, tc := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		volume *corev1.PersistentVolume
		fails  string
		want   float64
	}{
		"the volume that was found for it":    {claim("c"), volume("v"), "persistentvolumes", 1},
		"the claim that it was found for":     {claim("c"), volume("v", of("c", "uid-c"), in(corev1.VolumeBound)), "persistentvolumeclaims", 1},
		"what says nothing of its size":       {claim("c", wants("0")), volume("v", of("c", "uid-c"), in(corev1.VolumeBound), holdsNothing), "", 1},
		"a volume that it names":              {claim("c", wantsVolume("v")), volume("v"), "persistentvolumes", 0},
		"the status of one that is lost":      {claim("c", wantsVolume("none"), boundOnce("none")), nil, "persistentvolumeclaims", 0},
		"the driver that it was migrated to":  {claim("c", marked), volume("v"), "persistentvolumeclaims", 0},
		"the status of one that gets nothing": {claim("c", wants("99Gi"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = "" }), volume("v"), "persistentvolumeclaims", 0},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{tc.claim}
			if tc.volume != nil {
				objects = append(objects, tc.volume)
			}
			c, rig := prepare(t, nil, objects, objects...)
			if tc.fails != "" {
				rig.Fail("update", tc.fails, no)
			}
			c.timers.provisioning(keyed("c"), plugin, noon)
			before := failedOf(t, plugin)
			if err := c.claims.Reconcile(t.Context(), keyed("c")).Err(); err == nil {
				t.Error("nothing has failed")
			}
			if got := failedOf(t, plugin) - before; got != tc.want {
				t.Errorf("%v failures are counted, want %v", got, tc.want)
			}
		})
	}
}

func holdsNothing(pv *corev1.PersistentVolume) { delete(pv.Spec.Capacity, corev1.ResourceStorage) }
