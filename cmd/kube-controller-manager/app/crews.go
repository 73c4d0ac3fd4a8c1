package app

import (
	"sync"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// crewOf are the controllers whose numbers of workers flags set. That of the cloud's
// service controller is not among them: its loop is that of a library.
var crewOf = map[string]string{
	"concurrent-cron-job-syncs":                           names.CronJobController,
	"concurrent-daemonset-syncs":                          names.DaemonSetController,
	"concurrent-deployment-syncs":                         names.DeploymentController,
	"concurrent-device-taint-eviction-syncs":              names.DeviceTaintEvictionController,
	"concurrent-endpoint-syncs":                           names.EndpointsController,
	"concurrent-ephemeralvolume-syncs":                    names.EphemeralVolumeController,
	"concurrent-gc-syncs":                                 names.GarbageCollectorController,
	"concurrent-horizontal-pod-autoscaler-syncs":          names.HorizontalPodAutoscalerController,
	"concurrent-job-syncs":                                names.JobController,
	"concurrent-namespace-syncs":                          names.NamespaceController,
	"concurrent-rc-syncs":                                 names.ReplicationControllerController,
	"concurrent-replicaset-syncs":                         names.ReplicaSetController,
	"concurrent-resource-quota-syncs":                     names.ResourceQuotaController,
	"concurrent-resourceclaim-syncs":                      names.ResourceClaimController,
	"concurrent-service-endpoint-syncs":                   names.EndpointSliceController,
	"concurrent-serviceaccount-token-syncs":               names.ServiceAccountTokenController,
	"concurrent-statefulset-syncs":                        names.StatefulSetController,
	"concurrent-ttl-after-finished-syncs":                 names.TTLAfterFinishedController,
	"concurrent-validating-admission-policy-status-syncs": names.ValidatingAdmissionPolicyStatusController,
	"concurrent-volume-binder-syncs":                      names.PersistentVolumeBinderController,
	"mirroring-concurrent-service-endpoint-syncs":         names.EndpointSliceMirroringController,
}

// crews sets the numbers of workers of controllers that run, and of those that start later.
type crews struct {
	mu     sync.Mutex
	wanted map[string]int // by controller; none: as it was made
	terms  *terms
}

// set gives a controller so many workers.
func (c *crews) set(controller string, workers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted[controller] = workers
	for _, term := range c.terms.list() {
		for _, loop := range term.of(controller) {
			setWorkers(loop, workers)
		}
	}
}

// join gives a loop that starts the workers that its controller has been given.
func (c *crews) join(controller string, loop Loop) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if workers, ok := c.wanted[controller]; ok {
		setWorkers(loop, workers)
	}
}

func setWorkers(loop Loop, workers int) {
	if l, ok := loop.(interface{ SetWorkers(int) }); ok {
		l.SetWorkers(workers)
	}
}
