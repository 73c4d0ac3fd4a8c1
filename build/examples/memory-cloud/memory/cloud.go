// Package memory is a cloud that keeps its load balancers, routes and instances in memory.
// It is an example of a provider, and what tests of the loops run against: its console
// shows what there is and what was asked, starts and stops instances, and lets calls fail.
package memory

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	cloudprovider "k8s.io/cloud-provider"
	"sigs.k8s.io/yaml"
)

// Name is the name of the provider in --cloud-provider.
const Name = "memory"

// What an instance does.
const (
	Running = "running"
	Off     = "off"
)

// Config is the content of --cloud-config.
type Config struct {
	// Console is the address at which the cloud can be looked at and changed; "" is none.
	Console string `json:"console,omitempty"`
	// Without are what this cloud does not have: loadBalancers, routes, instances, clusterID.
	Without []string `json:"without,omitempty"`
	// Instances are those that there are at first.
	Instances []string `json:"instances,omitempty"`
}

// State is what there is in the cloud.
type State struct {
	// Balancers are by the name that the cloud gives them.
	Balancers map[string]Balancer `json:"balancers"`
	// Routes are by the name that the cloud gives them.
	Routes map[string]cloudprovider.Route `json:"routes"`
	// Instances are running or off, by node name.
	Instances map[string]string `json:"instances"`
	// Calls are the last calls of the loops, in their order.
	Calls []Call `json:"calls"`
}

// Balancer is a load balancer.
type Balancer struct {
	Service string   `json:"service"`
	Address string   `json:"address"`
	Nodes   []string `json:"nodes"`
}

// Call is one call of the provider.
type Call struct {
	Method string    `json:"method"`
	Of     string    `json:"of"`
	At     time.Time `json:"at"`
	Failed bool      `json:"failed,omitempty"`
}

// Cloud is the cloud. It is safe for concurrent use.
type Cloud struct {
	without []string

	mu        sync.Mutex
	state     State
	addresses int
	failures  map[target]int // how often a method still fails
}

// target is a method, for one object or for all.
type target struct{ method, of string }

// remembered is how many calls the console shows.
const remembered = 1000

var _ cloudprovider.Interface = (*Cloud)(nil)

// New makes the cloud of a configuration; nil is for none.
func New(config io.Reader) (cloudprovider.Interface, error) {
	var c Config
	if config != nil {
		content, err := io.ReadAll(config)
		if err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
		if err := yaml.UnmarshalStrict(content, &c); err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
	}
	cloud := &Cloud{without: c.Without, failures: map[target]int{}, state: State{
		Balancers: map[string]Balancer{}, Routes: map[string]cloudprovider.Route{}, Instances: map[string]string{}}}
	for _, name := range c.Instances {
		cloud.state.Instances[name] = Running
	}
	if c.Console != "" {
		if err := cloud.serve(c.Console); err != nil {
			return nil, fmt.Errorf("open the console: %w", err)
		}
	}
	return cloud, nil
}

// Initialize does nothing: this cloud needs no clients.
func (c *Cloud) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}

// ProviderName is the name of the provider.
func (c *Cloud) ProviderName() string { return Name }

// HasClusterID reports whether the cluster has an ID in this cloud.
func (c *Cloud) HasClusterID() bool { return c.has("clusterID") }

// LoadBalancer returns the load balancers.
func (c *Cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return c, c.has("loadBalancers") }

// InstancesV2 returns the instances.
func (c *Cloud) InstancesV2() (cloudprovider.InstancesV2, bool) { return c, c.has("instances") }

// Routes returns the routes.
func (c *Cloud) Routes() (cloudprovider.Routes, bool) { return c, c.has("routes") }

// Instances is an older way to the instances.
func (c *Cloud) Instances() (cloudprovider.Instances, bool) { return nil, false }

// Zones is an older way to the zones of instances.
func (c *Cloud) Zones() (cloudprovider.Zones, bool) { return nil, false }

// Clusters are not known to this cloud.
func (c *Cloud) Clusters() (cloudprovider.Clusters, bool) { return nil, false }

func (c *Cloud) has(what string) bool { return !slices.Contains(c.without, what) }

var errOutOfOrder = errors.New("the cloud is out of order")

// asked notes a call and returns the error that it is to fail with. The caller holds the lock.
func (c *Cloud) asked(method, of string) error {
	call := Call{Method: method, Of: of, At: time.Now()}
	for _, key := range []target{{method, of}, {method, ""}} {
		if c.failures[key] > 0 {
			c.failures[key]--
			call.Failed = true
			break
		}
	}
	if c.state.Calls = append(c.state.Calls, call); len(c.state.Calls) > remembered {
		c.state.Calls = slices.Delete(c.state.Calls, 0, 1)
	}
	if call.Failed {
		return errOutOfOrder
	}
	return nil
}
