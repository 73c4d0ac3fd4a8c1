package cloud

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cloudprovider "k8s.io/cloud-provider"
)

// provider passes what a loop asks of a cloud provider through its calls. Errors come
// back as they are: the library compares some of them. Callers heed the bool
// alone: what the cloud does not have is not nil.
type provider struct {
	cloudprovider.Interface
	calls *calls
}

// LoadBalancer returns the load balancers, if there are any.
func (p provider) LoadBalancer() (cloudprovider.LoadBalancer, bool) {
	b, ok := p.Interface.LoadBalancer()
	return balancers{b, p.calls}, ok
}

// Instances returns the instances by the older interface, if the provider has it.
func (p provider) Instances() (cloudprovider.Instances, bool) {
	i, ok := p.Interface.Instances()
	return instances{i, p.calls}, ok
}

// InstancesV2 returns the instances, if the provider has them.
func (p provider) InstancesV2() (cloudprovider.InstancesV2, bool) {
	i, ok := p.Interface.InstancesV2()
	return instancesV2{i, p.calls}, ok
}

// Routes returns the routes, if there are any.
func (p provider) Routes() (cloudprovider.Routes, bool) {
	r, ok := p.Interface.Routes()
	return routes{r, p.calls}, ok
}

type balancers struct {
	cloudprovider.LoadBalancer
	calls *calls
}

func keyOf(s *corev1.Service) string { return s.Namespace + "/" + s.Name }

// GetLoadBalancer returns the status of a load balancer, and whether there is one.
func (b balancers) GetLoadBalancer(ctx context.Context, cluster string, service *corev1.Service) (status *corev1.LoadBalancerStatus, exists bool, err error) {
	err = b.calls.ask(ctx, "GetLoadBalancer", keyOf(service), func(ctx context.Context) (err error) {
		status, exists, err = b.LoadBalancer.GetLoadBalancer(ctx, cluster, service)
		return err
	})
	return status, exists, err
}

// EnsureLoadBalancer makes or changes a load balancer.
func (b balancers) EnsureLoadBalancer(ctx context.Context, cluster string, service *corev1.Service, nodes []*corev1.Node) (status *corev1.LoadBalancerStatus, err error) {
	err = b.calls.change(ctx, "EnsureLoadBalancer", service.Namespace, keyOf(service), func(ctx context.Context) (err error) {
		status, err = b.LoadBalancer.EnsureLoadBalancer(ctx, cluster, service, nodes)
		return err
	})
	return status, err
}

// UpdateLoadBalancer changes the nodes of a load balancer.
func (b balancers) UpdateLoadBalancer(ctx context.Context, cluster string, service *corev1.Service, nodes []*corev1.Node) error {
	return b.calls.change(ctx, "UpdateLoadBalancer", service.Namespace, keyOf(service), func(ctx context.Context) error {
		return b.LoadBalancer.UpdateLoadBalancer(ctx, cluster, service, nodes)
	})
}

// EnsureLoadBalancerDeleted deletes a load balancer, if there is one.
func (b balancers) EnsureLoadBalancerDeleted(ctx context.Context, cluster string, service *corev1.Service) error {
	return b.calls.change(ctx, "EnsureLoadBalancerDeleted", service.Namespace, keyOf(service), func(ctx context.Context) error {
		return b.LoadBalancer.EnsureLoadBalancerDeleted(ctx, cluster, service)
	})
}

// instances has the methods of the older interface that the loops ask.
type instances struct {
	cloudprovider.Instances
	calls *calls
}

// InstanceID returns the name that the cloud has for a node.
func (i instances) InstanceID(ctx context.Context, node types.NodeName) (id string, err error) {
	err = i.calls.change(ctx, "InstanceID", metav1.NamespaceNone, string(node), func(ctx context.Context) (err error) {
		id, err = i.Instances.InstanceID(ctx, node)
		return err
	})
	return id, err
}

// InstanceExistsByProviderID reports whether there is such an instance.
func (i instances) InstanceExistsByProviderID(ctx context.Context, id string) (exists bool, err error) {
	err = i.calls.change(ctx, "InstanceExistsByProviderID", metav1.NamespaceNone, id, func(ctx context.Context) (err error) {
		exists, err = i.Instances.InstanceExistsByProviderID(ctx, id)
		return err
	})
	return exists, err
}

// InstanceShutdownByProviderID reports whether the instance is shut down.
func (i instances) InstanceShutdownByProviderID(ctx context.Context, id string) (down bool, err error) {
	err = i.calls.change(ctx, "InstanceShutdownByProviderID", metav1.NamespaceNone, id, func(ctx context.Context) (err error) {
		down, err = i.Instances.InstanceShutdownByProviderID(ctx, id)
		return err
	})
	return down, err
}

type instancesV2 struct {
	cloudprovider.InstancesV2
	calls *calls
}

// InstanceExists reports whether a node has an instance.
func (i instancesV2) InstanceExists(ctx context.Context, node *corev1.Node) (exists bool, err error) {
	err = i.calls.change(ctx, "InstanceExists", metav1.NamespaceNone, node.Name, func(ctx context.Context) (err error) {
		exists, err = i.InstancesV2.InstanceExists(ctx, node)
		return err
	})
	return exists, err
}

// InstanceShutdown reports whether the instance of a node is shut down.
func (i instancesV2) InstanceShutdown(ctx context.Context, node *corev1.Node) (down bool, err error) {
	err = i.calls.change(ctx, "InstanceShutdown", metav1.NamespaceNone, node.Name, func(ctx context.Context) (err error) {
		down, err = i.InstancesV2.InstanceShutdown(ctx, node)
		return err
	})
	return down, err
}

type routes struct {
	cloudprovider.Routes
	calls *calls
}

// ListRoutes returns the routes of the cluster.
func (r routes) ListRoutes(ctx context.Context, cluster string) (all []*cloudprovider.Route, err error) {
	err = r.calls.begins(ctx, "ListRoutes", "", func(ctx context.Context) (err error) {
		all, err = r.Routes.ListRoutes(ctx, cluster)
		return err
	})
	return all, err
}

// CreateRoute makes a route.
func (r routes) CreateRoute(ctx context.Context, cluster, hint string, route *cloudprovider.Route) error {
	return r.calls.change(ctx, "CreateRoute", metav1.NamespaceNone, string(route.TargetNode), func(ctx context.Context) error {
		return r.Routes.CreateRoute(ctx, cluster, hint, route)
	})
}

// DeleteRoute deletes a route.
func (r routes) DeleteRoute(ctx context.Context, cluster string, route *cloudprovider.Route) error {
	return r.calls.change(ctx, "DeleteRoute", metav1.NamespaceNone, string(route.TargetNode), func(ctx context.Context) error {
		return r.Routes.DeleteRoute(ctx, cluster, route)
	})
}
