package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/election"
)

// leader is the pod of the manager that holds the lease.
type leader struct {
	namespace, pod, identity string
	// late is how long the lease has been over; zero while it holds.
	late time.Duration
}

func (l leader) String() string {
	said := fmt.Sprintf("the leader, pod %s/%s", l.namespace, l.pod)
	if l.late > 0 {
		said += fmt.Sprintf(" (its lease was over %s ago)", l.late.Round(time.Second))
	}
	return said
}

// findLeader reads the lease, and finds the pod of the process that holds it.
func (o *options) findLeader(ctx context.Context, client kubernetes.Interface) (leader, error) {
	namespace, name, ok := strings.Cut(o.lease, "/")
	if !ok || namespace == "" || name == "" {
		return leader{}, questionError{fmt.Errorf("--lease is %q: it has to be NAMESPACE/NAME", o.lease)}
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return leader{}, fmt.Errorf("read the lease of the leader: %w", err)
	}
	found := leader{namespace: namespace, pod: o.pod, identity: ptr.Deref(lease.Spec.HolderIdentity, "")}
	if found.identity == "" {
		return leader{}, fmt.Errorf("nobody leads: no process holds the lease %s", o.lease)
	}
	if renewed := lease.Spec.RenewTime; renewed != nil {
		lasts := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
		found.late = max(0, time.Since(renewed.Add(lasts)))
	}
	if found.pod != "" {
		return found, nil
	}
	host := election.Host(found.identity)
	// Static pods are named after the program and the node, and the lease after the program.
	names := []string{name + "-" + host, host}
	for _, pod := range names {
		switch _, err := client.CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{}); {
		case err == nil:
			found.pod = pod
			return found, nil
		case !apierrors.IsNotFound(err):
			return leader{}, fmt.Errorf("find the pod of the leader, %s: %w", found.identity, err)
		}
	}
	return leader{}, fmt.Errorf("the leader is %s, and namespace %s has no pod %s: name its pod with --pod, or ask at its address with --server",
		found.identity, namespace, strings.Join(names, " or "))
}
