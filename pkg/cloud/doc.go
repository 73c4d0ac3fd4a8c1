// Package cloud runs the loops that keep a cloud in step with the cluster, where a build
// has registered a cloud provider: load balancers of Services, routes to nodes, and nodes
// whose instances are gone. They are those of the published library k8s.io/cloud-provider,
// as cloud controller managers run them.
//
// The library has loops, queues and event recorders of its own. What this package adds:
//
//   - One place through which a loop reaches the provider and the API server (calls.go,
//     gate.go). It shows what is on its way and what was answered, finds a call that is
//     stuck, turns a panic of the provider into an error, and at a stop lets what is under
//     way end and nothing more begin. The library's workers outlive its Run.
//   - A node is deleted by its UID, and once: the library deletes by name, and again until
//     its cache shows that the node is gone (nodes.go).
//
// It decides nothing else. It reads Services and Nodes whole, because a provider may read
// any field. It writes what the library writes: status and finalizer of Services, the
// condition NetworkUnavailable and the shutdown taint of nodes, deletions of nodes, events.
package cloud
