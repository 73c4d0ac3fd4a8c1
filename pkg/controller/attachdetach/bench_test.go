package attachdetach

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// cluster is a controller that has taken over a cluster: each volume is attached to a
// node, which has it in use for a pod.
func cluster(t testing.TB, nodes, attachments int) (*Controller, []*corev1.Node) {
	rig := fixture.New(fake.NewClientset(), noon)
	c := controllerOf(t, rig, Options{})
	all := make([]*corev1.Node, nodes)
	for i := range all {
		all[i] = node(fmt.Sprintf("node-%d", i))
	}
	for i := range attachments {
		n := all[i%nodes]
		n.Status.VolumesInUse = append(n.Status.VolumesInUse, nameOf(i))
		n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: nameOf(i)})
		va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: attachmentName(nameOf(i), n.Name)}}
		va.Spec.NodeName, va.Status.Attached = n.Name, true
		rig.Cache(t, claim(i), pv(i), podOf(fmt.Sprintf("pod-%d", i), i, n.Name), va)
	}
	for _, n := range all {
		rig.Cache(t, n)
		c.nodeChanged(runner.Change[corev1.Node]{New: n, Initial: true}, nobody{})
	}
	c.recover()
	for i := range attachments {
		settleKey(t, c, key{volume: nameOf(i)})
	}
	return c, all
}

// settleKey reconciles a key without writing anything.
func settleKey(t testing.TB, c *Controller, k key) {
	o, err := c.observe(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	p := plan(o, noon)
	if len(p.Stages) > 0 {
		t.Fatalf("%s: writes because %s", k, p.Why)
	}
	c.note(k, p.Note(nil))
}

// nobody is awake, and counts who is woken.
type nobody struct{ count *int }

func (n nobody) Add(key) {
	if n.count != nil {
		*n.count++
	}
}

func (n nobody) AddAfter(k key, _ time.Duration) { n.Add(k) }

// report is what a kubelet writes when nothing has changed but the time.
func report(n *corev1.Node) *corev1.Node {
	after := n.DeepCopy()
	after.Status.Conditions[0].LastHeartbeatTime = metav1.Time{Time: noon}
	return after
}

func TestTheReportOfANodeWakesNobody(t *testing.T) {
	c, nodes := cluster(t, 3, 10)
	count := 0
	for _, n := range nodes {
		c.nodeChanged(runner.Change[corev1.Node]{Old: n, New: report(n)}, nobody{&count})
	}
	if count > 0 {
		t.Errorf("woke %d keys", count)
	}
}

// BenchmarkNodeUpdate is a status report of a node, as fifty a second come in a large
// cluster. It costs the same however many volumes are attached elsewhere.
func BenchmarkNodeUpdate(b *testing.B) {
	for _, size := range []struct{ nodes, attachments int }{{30, 100}, {3000, 10_000}} {
		b.Run(fmt.Sprintf("nodes=%d/attachments=%d", size.nodes, size.attachments), func(b *testing.B) {
			c, nodes := cluster(b, size.nodes, size.attachments)
			after := make([]*corev1.Node, len(nodes))
			for i, n := range nodes {
				after[i] = report(n)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.nodeChanged(runner.Change[corev1.Node]{Old: nodes[i%len(nodes)], New: after[i%len(nodes)]}, nobody{})
			}
		})
	}
}

// BenchmarkVolume is one look at a volume that is attached and wanted, which every change
// that concerns it costs.
func BenchmarkVolume(b *testing.B) {
	for _, size := range []struct{ nodes, attachments int }{{30, 100}, {3000, 10_000}} {
		b.Run(fmt.Sprintf("nodes=%d/attachments=%d", size.nodes, size.attachments), func(b *testing.B) {
			c, _ := cluster(b, size.nodes, size.attachments)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				settleKey(b, c, key{volume: nameOf(i % size.attachments)})
			}
		})
	}
}
