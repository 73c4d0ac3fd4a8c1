package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"
)

func keyOf(s *corev1.Service) string { return s.Namespace + "/" + s.Name }

func statusOf(b Balancer) *corev1.LoadBalancerStatus {
	return &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: b.Address}}}
}

func namesOf(nodes []*corev1.Node) []string {
	names := []string{}
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names
}

// GetLoadBalancerName returns what the cloud calls the load balancer of a Service.
func (c *Cloud) GetLoadBalancerName(_ context.Context, _ string, s *corev1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(s)
}

// GetLoadBalancer returns the status of a load balancer, and whether there is one.
func (c *Cloud) GetLoadBalancer(ctx context.Context, cluster string, s *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("GetLoadBalancer", keyOf(s)); err != nil {
		return nil, false, err
	}
	b, ok := c.state.Balancers[c.GetLoadBalancerName(ctx, cluster, s)]
	if !ok {
		return nil, false, nil
	}
	return statusOf(b), true, nil
}

// EnsureLoadBalancer makes a load balancer, or gives one that there is these nodes.
func (c *Cloud) EnsureLoadBalancer(ctx context.Context, cluster string, s *corev1.Service, nodes []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("EnsureLoadBalancer", keyOf(s)); err != nil {
		return nil, err
	}
	name := c.GetLoadBalancerName(ctx, cluster, s)
	b, ok := c.state.Balancers[name]
	if !ok {
		c.addresses++ // of the network that is kept for examples
		b = Balancer{Service: keyOf(s), Address: fmt.Sprintf("198.51.%d.%d", 100+c.addresses/256, c.addresses%256)}
	}
	b.Nodes = namesOf(nodes)
	c.state.Balancers[name] = b
	return statusOf(b), nil
}

// UpdateLoadBalancer gives a load balancer these nodes.
func (c *Cloud) UpdateLoadBalancer(ctx context.Context, cluster string, s *corev1.Service, nodes []*corev1.Node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("UpdateLoadBalancer", keyOf(s)); err != nil {
		return err
	}
	name := c.GetLoadBalancerName(ctx, cluster, s)
	b, ok := c.state.Balancers[name]
	if !ok {
		return fmt.Errorf("there is no load balancer %s", name)
	}
	b.Nodes = namesOf(nodes)
	c.state.Balancers[name] = b
	return nil
}

// EnsureLoadBalancerDeleted deletes a load balancer, if there is one.
func (c *Cloud) EnsureLoadBalancerDeleted(ctx context.Context, cluster string, s *corev1.Service) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("EnsureLoadBalancerDeleted", keyOf(s)); err != nil {
		return err
	}
	delete(c.state.Balancers, c.GetLoadBalancerName(ctx, cluster, s))
	return nil
}

// InstanceExists reports whether a node has an instance.
func (c *Cloud) InstanceExists(_ context.Context, node *corev1.Node) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("InstanceExists", node.Name); err != nil {
		return false, err
	}
	_, ok := c.state.Instances[node.Name]
	return ok, nil
}

// InstanceShutdown reports whether the instance of a node is off.
func (c *Cloud) InstanceShutdown(_ context.Context, node *corev1.Node) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("InstanceShutdown", node.Name); err != nil {
		return false, err
	}
	return c.state.Instances[node.Name] == Off, nil
}

// InstanceMetadata returns what the cloud knows of the instance of a node.
func (c *Cloud) InstanceMetadata(_ context.Context, node *corev1.Node) (*cloudprovider.InstanceMetadata, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("InstanceMetadata", node.Name); err != nil {
		return nil, err
	}
	if _, ok := c.state.Instances[node.Name]; !ok {
		return nil, cloudprovider.InstanceNotFound
	}
	return &cloudprovider.InstanceMetadata{ProviderID: Name + "://" + node.Name, InstanceType: Name}, nil
}

// ListRoutes returns the routes of the cluster.
func (c *Cloud) ListRoutes(_ context.Context, cluster string) ([]*cloudprovider.Route, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("ListRoutes", cluster); err != nil {
		return nil, err
	}
	all := []*cloudprovider.Route{}
	for name, route := range c.state.Routes {
		if strings.HasPrefix(name, cluster+"-") {
			all = append(all, &route)
		}
	}
	return all, nil
}

// CreateRoute makes a route.
func (c *Cloud) CreateRoute(_ context.Context, cluster, hint string, route *cloudprovider.Route) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("CreateRoute", string(route.TargetNode)); err != nil {
		return err
	}
	made := *route
	made.Name = fmt.Sprintf("%s-%s-%s", cluster, hint, strings.NewReplacer("/", "-", ":", "-", ".", "-").Replace(route.DestinationCIDR))
	c.state.Routes[made.Name] = made
	return nil
}

// DeleteRoute deletes a route.
func (c *Cloud) DeleteRoute(_ context.Context, _ string, route *cloudprovider.Route) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("DeleteRoute", string(route.TargetNode)); err != nil {
		return err
	}
	delete(c.state.Routes, route.Name)
	return nil
}
