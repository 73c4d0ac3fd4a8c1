package attachdetach

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/nodes"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observed is a volume or a node.
type observed struct {
	volume *volumeView
	node   *nodeView
}

// volumeView is what the plan of a volume is made from.
type volumeView struct {
	record
	name volumes.Name
	// attachable: volumes of its source are attached at all.
	attachable bool
	// plugged: there is a plugin for the name of the volume.
	plugged bool
	// sources says, by node, how the pods there describe the volume: objects that mean one
	// volume may describe it differently.
	sources map[string]*volumes.Source
	// wants are the live pods that want it, by node.
	wants map[string][]*corev1.Pod
	nodes map[string]nodeFacts
	// attachments are the cached ones, by node.
	attachments map[string]*storagev1.VolumeAttachment
	options     Options
}

// nodeFacts is what a volume needs to know of a node.
type nodeFacts struct {
	ready, outOfService bool
	// leaves: the last event of the node did not say that it is gone. When the cache does not
	// show it any more, that event, with what the node had in use, is still to come.
	leaves bool
	// inUse: the node says that it has the volume in use, or the last one of its name did.
	inUse bool
	// seen counts the events of the node, done the changes of its status. Failed is the last
	// of those whose write has failed.
	seen, done, failed uint64
}

func (c *Controller) observe(_ context.Context, k key) (observed, error) {
	c.recover()
	if k.node != "" {
		view, err := c.observeNode(k.node)
		return observed{node: view}, err
	}
	view, err := c.observeVolume(k.volume)
	return observed{volume: view}, err
}

func (c *Controller) observeVolume(name volumes.Name) (*volumeView, error) {
	v := &volumeView{
		record: c.book.volume(name), name: name, nodes: map[string]nodeFacts{}, options: c.options,
		attachments: map[string]*storagev1.VolumeAttachment{},
	}
	err := c.wanted(v)
	if err != nil {
		return nil, err
	}
	c.takeUp(v)
	if len(v.pairs) == 0 && len(v.wants) == 0 {
		return nil, reconcile.ErrAbsent
	}
	v.plugged = c.plugged(name)
	for _, node := range v.order() {
		v.nodes[node] = c.facts(name, node)
		if attachment := attachmentName(name, node); attachment != "" {
			if found, err := reconcile.Cached[storagev1.VolumeAttachment](c.attachments, attachment); err == nil {
				v.attachments[node] = found
			}
		}
	}
	return v, nil
}

// takeUp adds what only a VolumeAttachment speaks of, as recover does at the start.
func (c *Controller) takeUp(v *volumeView) {
	strays := c.book.straysOf(v.name)
	if len(strays) == 0 {
		return
	}
	pairs := maps.Clone(v.pairs)
	for _, node := range strays {
		_, err := reconcile.Cached[storagev1.VolumeAttachment](c.attachments, attachmentName(v.name, node))
		p := pairs[node]
		if p.exists() || err != nil {
			c.book.found(v.name, node)
			continue
		}
		if pairs == nil {
			pairs = map[string]pair{}
		}
		p.state, p.known, p.assumed, p.seen = uncertain, true, true, c.book.standing(v.name, node).seen
		pairs[node] = p
	}
	v.pairs = pairs
}

// sourceAt is what the volume is to the pods of a node.
func (v *volumeView) sourceAt(node string) *volumes.Source {
	if source := v.sources[node]; source != nil {
		return source
	}
	return v.source
}

// order are the nodes that the volume has to do with.
func (v *volumeView) order() []string {
	nodes := slices.AppendSeq(slices.Collect(maps.Keys(v.pairs)), maps.Keys(v.wants))
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// inTurn are these nodes, the least recently tried first. Otherwise a node with which every
// operation fails would starve the other nodes of a volume that is for one node only.
func (v *volumeView) inTurn() []string {
	nodes := v.order()
	slices.SortStableFunc(nodes, func(a, b string) int { return v.pairs[a].tried.Compare(v.pairs[b].tried) })
	return nodes
}

func (c *Controller) facts(name volumes.Name, node string) nodeFacts {
	f := c.book.standing(name, node)
	cached, err := reconcile.Cached[corev1.Node](c.nodes, node)
	if err != nil {
		f.inUse = f.inUse || f.leaves
		return f
	}
	f.ready, f.outOfService = nodes.Ready(cached), nodes.OutOfService(cached)
	f.inUse = slices.Contains(cached.Status.VolumesInUse, name)
	return f
}
