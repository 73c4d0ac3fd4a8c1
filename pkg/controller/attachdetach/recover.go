package attachdetach

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
)

// recover fills the book from the caches, once: what the status of any node lists is
// attached to it. What only a VolumeAttachment speaks of may be attached, and counts as in
// use until its node has been seen once more.
func (c *Controller) recover() {
	c.recovered.Do(func() {
		found := map[volumes.Name]record{}
		for _, item := range c.nodes.List() {
			if node, is := item.(*corev1.Node); is {
				for _, listed := range node.Status.VolumesAttached {
					add(found, listed.Name, node.Name, pair{state: attached, device: listed.DevicePath})
				}
			}
		}
		for _, item := range c.attachments.List() {
			va, is := item.(*storagev1.VolumeAttachment)
			if !is {
				continue
			}
			volume, is := c.volumeOf(va)
			if !is {
				continue
			}
			seen := c.book.standing(volume, va.Spec.NodeName).seen
			add(found, volume, va.Spec.NodeName, pair{state: uncertain, known: true, assumed: true, seen: seen})
		}
		for name, r := range found {
			c.book.restore(name, r)
			c.Add(key{volume: name})
			for node := range r.pairs {
				c.Add(key{node: node})
			}
		}
	})
}

// add notes a pair unless one is known already.
func add(found map[volumes.Name]record, name volumes.Name, node string, p pair) {
	r, is := found[name]
	if !is {
		r = record{pairs: map[string]pair{}}
		found[name] = r
	}
	if _, known := r.pairs[node]; !known {
		r.pairs[node] = p
	}
}

// restore puts the record of an earlier process into the book. The status of the nodes
// is as it is: nothing is to be written.
func (b *book) restore(name volumes.Name, r record) {
	b.put(name, r)
	b.mu.Lock()
	defer b.mu.Unlock()
	for node := range r.pairs {
		n := b.nodes[node]
		n.done = n.want
	}
}
