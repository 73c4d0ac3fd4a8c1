package options

import (
	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	kcmv1alpha1 "k8s.io/kube-controller-manager/config/v1alpha1"
)

// configuration is what the flags of the controllers are bound to.
type configuration = kcmv1alpha1.KubeControllerManagerConfiguration

// section is what one controller brings to the command line.
type section struct {
	// controller is the canonical name, and the title of the flags in help.
	controller string
	// flags binds the flags to the controller's part of the configuration,
	// whose present values are the defaults.
	flags func(fs *pflag.FlagSet, c *configuration)
	// check reports what is wrong with the values.
	check func(p *problems, s *settings)
}

// settings is what the checks of the controllers look at.
type settings struct {
	*configuration
	// podCIDRs says whether and from where nodes get pod CIDRs.
	podCIDRs podCIDRs
	// enabled reports whether any of the controllers will run.
	enabled func(controllers ...string) bool
	gates   featuregate.FeatureGate
}

// podCIDRs are those of the shared flags that matter to node IPAM.
type podCIDRs struct {
	allocate    bool
	clusterCIDR string
}

// sections lists them in the order of help.
func sections() []section {
	return []section{
		serviceLB,
		attachDetach,
		csrSigning,
		deployment,
		deviceTaintEviction,
		resourceClaim,
		statefulSet,
		daemonSet,
		endpoints,
		endpointSlice,
		endpointSliceMirroring,
		ephemeralVolume,
		garbageCollector,
		horizontalPodAutoscaler,
		job,
		cronJob,
		legacyTokenCleaner,
		namespace,
		nodeIPAM,
		nodeLifecycle,
		persistentVolumeBinder,
		podGarbageCollector,
		replicaSet,
		replicationController,
		resourceQuota,
		serviceAccount,
		ttlAfterFinished,
		admissionPolicyStatus,
	}
}
