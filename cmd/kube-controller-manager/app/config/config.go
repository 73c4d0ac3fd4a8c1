// Package config holds what the command line has become: everything that Run
// needs, checked, loaded and opened. It reads no flag and starts nothing.
package config

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/flagz"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/compatibility"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	kcmv1alpha1 "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// Config is the process before Run.
type Config struct {
	// ComponentConfig is what the flags set, in the versioned form that /configz
	// shows. No pointer in it is nil.
	ComponentConfig kcmv1alpha1.KubeControllerManagerConfiguration

	// SecureServing holds the open listener and its certificates; nil when
	// --secure-port is 0.
	SecureServing *apiserver.SecureServingInfo
	// Authentication finds out who asks at the secure port.
	Authentication apiserver.AuthenticationInfo
	// Authorization decides what they may read there.
	Authorization apiserver.AuthorizationInfo

	// Client is the client of the process itself: leases, events, discovery.
	Client *clientset.Clientset
	// Kubeconfig is what clients of controllers are derived from.
	Kubeconfig *restclient.Config

	// EventBroadcaster carries the events of the process to the API server.
	EventBroadcaster record.EventBroadcaster
	// EventRecorder records events of the process, such as a change of leader.
	EventRecorder record.EventRecorder

	// ControllerShutdownTimeout is how long controllers may take to stop.
	ControllerShutdownTimeout time.Duration
	// RejectedPodBackoff replaces pods that kubelets reject at once ever more rarely.
	RejectedPodBackoff bool
	// VolumeBinderWorkers is how many claims, and how many volumes, are bound at once.
	VolumeBinderWorkers int32
	// NodeOutageBrakeThreshold is the share of nodes above which silence is not believed
	// while the process has trouble itself; 0 for none.
	NodeOutageBrakeThreshold float32
	// Tracing says where traces are sent; nil for none.
	Tracing *tracingapi.TracingConfiguration
	// Shadow says that nothing is written, and what is compared; nil: it is written.
	Shadow *Shadow
	// Rates limit the requests of all clients; nil limits them by Kubeconfig, at all times.
	Rates *transport.Rates
	// File is what --config names; nil for none.
	File File
	// PauseConfigMap says at run time what is paused; the zero value for none.
	PauseConfigMap types.NamespacedName
	// MaxDeletesPerMinute are the rates that deletions are held to; none for no limit.
	MaxDeletesPerMinute []act.DeleteRate
	// BatchWatchReads has busy connections of the caches read at intervals.
	BatchWatchReads bool

	// ComponentGlobalsRegistry knows the feature gates and the emulated version.
	ComponentGlobalsRegistry compatibility.ComponentGlobalsRegistry
	// Flagz gives the flags as they were set, for /flagz; nil shows none.
	Flagz flagz.Reader
}

// Shadow is how a process compares what it would write with what another one does.
type Shadow struct {
	// Window is how long the other one has for what this one would write.
	Window time.Duration
	// ReadOnly is in all clients of the process: it lets no write pass.
	ReadOnly *transport.ReadOnly
}

type completedConfig struct {
	*Config
}

// CompletedConfig is a Config that nothing is missing from. Only Complete makes
// one.
type CompletedConfig struct {
	*completedConfig
}

// Complete ends the making of a configuration. Its type is the promise to Run that
// the flags were validated and that whoever made c added what they wanted to add.
func (c *Config) Complete() *CompletedConfig {
	return &CompletedConfig{&completedConfig{c}}
}
