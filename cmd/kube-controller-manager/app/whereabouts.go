package app

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

const (
	// addressFor is how long the address of a node is not looked up again, whatever came of it.
	addressFor = 30 * time.Second
	// addressWithin bounds how long an answer waits for it.
	addressWithin = time.Second
)

// whereabouts finds the address of the node of a leader. A standby has no caches, so it is
// the one thing that an answer asks the API server for.
type whereabouts struct {
	client kubernetes.Interface

	mu    sync.Mutex
	host  string
	found string
	until time.Time
}

// address is that of the node with this name; empty when there is none, or it does not say.
func (w *whereabouts) address(host string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if host == w.host && time.Now().Before(w.until) {
		return w.found
	}
	ctx, cancel := context.WithTimeout(context.Background(), addressWithin)
	defer cancel()
	w.host, w.found, w.until = host, "", time.Now().Add(addressFor)
	// The role of the manager may list nodes, and not get one.
	nodes, err := w.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, host).String()})
	if err != nil || len(nodes.Items) != 1 {
		return ""
	}
	for _, address := range nodes.Items[0].Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			w.found = address.Address
			break
		}
	}
	return w.found
}
