package attachdetach

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
)

// book remembers what caches do not hold. A plan reads it through observe and changes it
// through its note. It is safe for concurrent use; only the worker of a volume changes
// the record of that volume.
type book struct {
	began       time.Time
	mu          sync.Mutex
	volumes     map[volumes.Name]record
	nodes       map[string]*nodeRecord
	pods        map[types.UID]map[volumes.Name]bool
	attachments map[string]volumes.Name // by the name of the VolumeAttachment
	// strays are the nodes by volume for which a VolumeAttachment was seen that no record has.
	strays map[volumes.Name]map[string]bool
}

// nodeRecord is what is remembered of a node.
type nodeRecord struct {
	// managed: this controller attaches its volumes.
	managed bool
	// gone: there is no such node any more; inUse is what the last one had in use.
	gone  bool
	inUse map[volumes.Name]bool
	// seen counts the events of the node.
	seen uint64
	// want counts the changes of what is to stand in its status, done is how many of them
	// are there. Failed is the last of those whose write has failed. Unsure: nobody knows what
	// stands there.
	want, done, failed uint64
	unsure             bool
	// verified is when the attachments of the node were last compared.
	verified time.Time
	volumes  map[volumes.Name]bool // that have a pair with it
	waiting  map[volumes.Name]bool // whose detach waits for it
}

func newBook(now time.Time) *book {
	return &book{
		began:   now,
		volumes: map[volumes.Name]record{}, nodes: map[string]*nodeRecord{},
		pods: map[types.UID]map[volumes.Name]bool{}, attachments: map[string]volumes.Name{},
		strays: map[volumes.Name]map[string]bool{},
	}
}

// node returns the record of a node, under the lock.
func (b *book) node(name string) *nodeRecord {
	n := b.nodes[name]
	if n == nil {
		n = &nodeRecord{volumes: map[volumes.Name]bool{}, waiting: map[volumes.Name]bool{}}
		b.nodes[name] = n
	}
	return n
}

func (b *book) volume(name volumes.Name) record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.volumes[name]
}

func (b *book) managed(node string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.nodes[node]
	return n != nil && n.managed
}

// wantedBy are the volumes that a pod was seen to want.
func (b *book) wantedBy(pod types.UID) []volumes.Name {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.pods[pod]))
}

// attachmentOf is the volume that a VolumeAttachment of this name is of.
func (b *book) attachmentOf(name string) (volumes.Name, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	volume, is := b.attachments[name]
	return volume, is
}

// stray notes that there is a VolumeAttachment of a volume and a node, unless the record
// of the volume says so.
func (b *book) stray(name volumes.Name, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.volumes[name].pairs[node].exists() {
		return
	}
	if b.strays[name] == nil {
		b.strays[name] = map[string]bool{}
	}
	b.strays[name][node] = true
}

// straysOf are the nodes for which a volume has a VolumeAttachment that no record has.
func (b *book) straysOf(name volumes.Name) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.strays[name]))
}

// found notes that the VolumeAttachment of a volume and a node is known, or gone.
func (b *book) found(name volumes.Name, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(name, node)
}

func (b *book) drop(name volumes.Name, node string) {
	if delete(b.strays[name], node); len(b.strays[name]) == 0 {
		delete(b.strays, name)
	}
}

// all are the volumes that something is remembered of.
func (b *book) all() []volumes.Name {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.volumes))
}

// standing is what the book says of a volume at a node.
func (b *book) standing(name volumes.Name, node string) nodeFacts {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.nodes[node]
	if n == nil {
		return nodeFacts{}
	}
	return nodeFacts{seen: n.seen, done: n.done, failed: n.failed, inUse: n.gone && n.inUse[name], leaves: n.seen > 0 && !n.gone}
}

// put replaces the record of a volume, and returns the nodes whose status has to follow.
func (b *book) put(name volumes.Name, r record, unsure ...string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.volumes[name]
	var wake []string
	for node, p := range r.pairs {
		if p.exists() {
			b.drop(name, node)
		}
		n, old := b.node(node), before.pairs[node]
		starts := p.leaving && !old.leaving
		if p.reported() != old.reported() || starts || p.reported() && p.device != old.device {
			n.want++
			wake = append(wake, node)
		}
		if starts {
			p.left = n.want
			r.pairs[node] = p
		}
		n.volumes[name] = true
		set(n.waiting, name, p.waits)
	}
	for node, old := range before.pairs {
		if _, still := r.pairs[node]; still {
			continue
		}
		n := b.node(node)
		delete(n.volumes, name)
		delete(n.waiting, name)
		if old.reported() {
			n.want++
			wake = append(wake, node)
		}
	}
	for _, node := range unsure {
		b.node(node).unsure = true
	}
	b.index(name, before, r)
	if b.volumes[name] = r; len(r.pairs) == 0 {
		delete(b.volumes, name)
	}
	b.leaveManagement(before, r)
	return wake
}

// index keeps what leads to a volume.
func (b *book) index(name volumes.Name, before, after record) {
	for node, p := range before.pairs {
		if _, still := after.pairs[node]; !still {
			if attachment := attachmentName(name, node); attachment != "" {
				delete(b.attachments, attachment)
			}
		}
		for _, pod := range p.pods {
			if delete(b.pods[pod.uid], name); len(b.pods[pod.uid]) == 0 {
				delete(b.pods, pod.uid)
			}
		}
	}
	for node, p := range after.pairs {
		if _, known := before.pairs[node]; !known {
			if attachment := attachmentName(name, node); attachment != "" {
				b.attachments[attachment] = name
			}
		}
		for _, pod := range p.pods {
			if b.pods[pod.uid] == nil {
				b.pods[pod.uid] = map[volumes.Name]bool{}
			}
			b.pods[pod.uid][name] = true
		}
	}
}

// leaveManagement forgets nodes that are gone and on which nothing is wanted any more.
func (b *book) leaveManagement(records ...record) {
	for _, r := range records {
		for node := range r.pairs {
			if n := b.nodes[node]; n != nil && n.gone {
				b.settle(node, n)
			}
		}
	}
}

// settle ends the management of a node that is gone unless something is wanted there,
// and forgets it when nothing is left on it.
func (b *book) settle(name string, n *nodeRecord) {
	for volume := range n.volumes {
		if b.volumes[volume].pairs[name].wanted {
			return
		}
	}
	if n.managed = false; len(n.volumes) == 0 {
		delete(b.nodes, name)
	}
}

// nodeSeen notes an event of a node. It returns whether the node has just become managed,
// and which of the volumes that wait for it to wake: all if the node has changed, otherwise
// only those that wait for the node to be seen.
func (b *book) nodeSeen(name string, managed, changed bool) (became bool, waiting []volumes.Name, has bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.node(name)
	n.seen++
	n.gone, n.inUse = false, nil
	became = managed && !n.managed
	n.managed = n.managed || managed
	for volume := range n.waiting {
		if changed || b.volumes[volume].pairs[name].assumed {
			waiting = append(waiting, volume)
		}
	}
	return became, waiting, len(n.volumes) > 0
}

// nodeGone notes that a node is gone, and what it had in use. It returns the volumes that
// have to do with it.
func (b *book) nodeGone(name string, inUse []corev1.UniqueVolumeName) []volumes.Name {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.node(name)
	n.seen++ // what was taken to be in use until now is so if the last node said it
	n.gone, n.inUse = true, map[volumes.Name]bool{}
	for _, volume := range inUse {
		n.inUse[volume] = true
	}
	with := slices.Collect(maps.Keys(n.volumes))
	b.settle(name, n)
	return with
}

func set(of map[volumes.Name]bool, name volumes.Name, in bool) {
	if in {
		of[name] = true
	} else {
		delete(of, name)
	}
}

// attachmentName is the name of the VolumeAttachment of a volume and a node; empty if it
// has none.
func attachmentName(name volumes.Name, node string) string {
	if driver, handle, is := volumes.ParseCSI(name); is {
		return volumes.Attachment(driver, handle, node)
	}
	return ""
}
