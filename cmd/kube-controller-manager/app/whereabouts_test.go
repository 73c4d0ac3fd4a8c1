package app

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/why"
)

func nodeAt(name string, addresses ...corev1.NodeAddress) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: addresses}}
}

func TestTheAddressOfALeaderIsThatOfItsNode(t *testing.T) {
	outside, inside := corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "203.0.113.7"}, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.7"}
	client := fake.NewClientset(nodeAt("node-a", outside, inside), nodeAt("node-b", outside))
	refuse := false
	var asked []string
	client.PrependReactor("list", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		selector := action.(clienttesting.ListAction).GetListRestrictions().Fields
		name, _ := selector.RequiresExactMatch("metadata.name")
		asked = append(asked, name)
		if refuse {
			return true, nil, errors.New("no")
		}
		// The fake does not select by name.
		node, err := client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", name)
		if err != nil {
			return true, &corev1.NodeList{}, nil
		}
		return true, &corev1.NodeList{Items: []corev1.Node{*node.(*corev1.Node)}}, nil
	})
	w := &whereabouts{client: client}
	for host, want := range map[string]string{"node-a": "10.0.0.7", "node-b": "", "pod-c": ""} {
		if got := w.address(host); got != want {
			t.Errorf("%s is at %q, want %q", host, got, want)
		}
	}
	before := len(asked)
	refuse = true
	w.until = time.Time{}
	if got := w.address("node-a"); got != "" || w.address("node-a") != "" || len(asked) != before+1 {
		t.Errorf("refused: %q, asked for %v", got, asked[before:])
	}
	refuse = false
	w.until = time.Now().Add(-time.Second)
	if got := w.address("node-a"); got != "10.0.0.7" {
		t.Errorf("after it was refused: %q", got)
	}
}

func TestQuestionsAreAboutWhatDiscoveryFindsNow(t *testing.T) {
	cc := testContext(t)
	cc.served = &atomic.Pointer[why.Kinds]{}
	list := func(names ...string) (lists []*metav1.APIResourceList) {
		for _, name := range names {
			lists = append(lists, &metav1.APIResourceList{GroupVersion: name + ".example.com/v1",
				APIResources: []metav1.APIResource{{Name: name + "s", SingularName: name, Kind: name, Verbs: metav1.Verbs{"get"}}}})
		}
		return lists
	}
	cc.served.Store(why.KindsOf(list("gadget")))
	for _, look := range []struct {
		says  string
		lists []*metav1.APIResourceList
		err   error
		want  map[string]bool
	}{
		{"one came", list("gadget", "widget"), nil, map[string]bool{"gadget": true, "widget": true}},
		{"a server does not answer", list("widget"), errors.New("gadgets are away"), map[string]bool{"gadget": true, "widget": true}},
		{"none answers", nil, errors.New("all are away"), map[string]bool{"gadget": true, "widget": true}},
		{"one went", list("widget"), nil, map[string]bool{"gadget": false, "widget": true}},
	} {
		_, lists, err := cc.noting(func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) { return nil, look.lists, look.err })()
		if len(lists) != len(look.lists) || !errors.Is(err, look.err) {
			t.Errorf("%s: passed on %v, %v", look.says, lists, err)
		}
		for kind, want := range look.want {
			if _, served := cc.served.Load().Find(kind); served != want {
				t.Errorf("%s: %s is served is %t", look.says, kind, served)
			}
		}
	}
}
