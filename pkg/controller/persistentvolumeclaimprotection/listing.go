package persistentvolumeclaimprotection

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	// page is how many pods are read at once.
	page = 500
	// shared is how long the claims that waited for a list may go by it: with many
	// namespaces it takes a while until it is their turn. The cache is asked each time, too.
	shared = time.Minute
	// untilCached is when a claim is looked at again that a pod uses which no cache shows.
	untilCached = 10 * time.Second
	// sharedAgain is the same by a list of another claim: the event that woke the claim may be
	// newer. The next list serves all again.
	sharedAgain = time.Second
)

// users are pods with a node by the claims that they name or may own.
type users map[string][]*corev1.Pod

// listing is what a live list of the pods of a namespace has shown.
type listing struct {
	users
	// at is when it had been read.
	at time.Time
	// waiting are the claims that were being deleted when the list began. It says nothing
	// about others, and is used once for each.
	waiting sets.Set[types.UID]
}

// take returns what the list says of a claim that has waited for it.
func (l *listing) take(claim *corev1.PersistentVolumeClaim, now time.Time) (of []*corev1.Pod, waited bool) {
	if l == nil || !l.waiting.Has(claim.UID) || l.over(now) {
		return nil, false
	}
	l.waiting.Delete(claim.UID)
	return l.users[claim.Name], true
}

// over reports whether nobody goes by the list any more.
func (l *listing) over(now time.Time) bool { return len(l.waiting) == 0 || now.Sub(l.at) > shared }

// look lists the pods of the namespace live.
func look(namespace string) act.Step {
	return act.List{Of: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}, Limit: page, Keep: keep}
}

// keep adds the pods of a page that have a node and claims.
func keep(kept any, read client.ObjectList) any {
	all, is := kept.(users)
	if !is {
		all = users{}
	}
	list, is := read.(*corev1.PodList)
	if !is {
		return all
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if claims := claimsOf(pod); pod.Spec.NodeName != "" && len(claims) > 0 {
			small := essence(pod)
			for _, claim := range claims {
				all[claim] = append(all[claim], small)
			}
		}
	}
	return all
}

// essence is what is asked of a pod that a list has shown.
func essence(pod *corev1.Pod) *corev1.Pod {
	small := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		DeletionTimestamp: pod.DeletionTimestamp, DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
	}}
	small.Spec.NodeName = pod.Spec.NodeName
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			small.Spec.Volumes = append(small.Spec.Volumes, v)
		}
	}
	return small
}

// listed returns what the list among the results has kept, and when it had been read; nil
// if it failed.
func listed(results act.Results) (users, time.Time) {
	for i := len(results) - 1; i >= 0; i-- {
		if kept, is := results[i].Kept.(users); is {
			return kept, results[i].At
		}
	}
	return nil, time.Time{}
}
