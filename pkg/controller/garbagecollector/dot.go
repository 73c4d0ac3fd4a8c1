package garbagecollector

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// vertex is a node as the picture shows it.
type vertex struct {
	version         schema.GroupVersion
	kind            string
	namespace, name string
	uid             types.UID
	state           state
	missing         bool
	virtual         bool
	owners          []types.UID
}

// picture returns the nodes that own or are owned, or only those that have to do
// with these UIDs, in order.
func (g *graph) picture(of []types.UID, all bool) []vertex {
	g.mu.Lock()
	defer g.mu.Unlock()
	shown := map[*node]bool{}
	var reach func(n *node)
	reach = func(n *node) {
		if n == nil || shown[n] || len(n.owners) == 0 && len(n.dependents) == 0 {
			return
		}
		shown[n] = true
		for i := range n.owners {
			reach(g.nodes[n.owners[i].UID])
		}
		for d := range n.dependents {
			reach(d)
		}
	}
	for _, uid := range of {
		reach(g.nodes[uid])
	}
	if all {
		for _, n := range g.nodes {
			reach(n)
		}
	}
	vertices := make([]vertex, 0, len(shown))
	for n := range shown {
		vertices = append(vertices, n.vertex())
	}
	slices.SortFunc(vertices, func(a, b vertex) int { return cmp.Compare(a.uid, b.uid) })
	return vertices
}

func (n *node) vertex() vertex {
	v := vertex{namespace: n.namespace.Value(), name: n.name, uid: n.uid, state: n.state}
	if n.virtual() {
		v.missing = n.was != nil || n.missed
		v.virtual = !v.missing
		if v.missing {
			v.namespace = "" // of what is nowhere it is not known
		}
		for d := range n.dependents {
			v.heardFrom(refTo(d.owners, n.uid))
			break
		}
		return v
	}
	v.version, v.kind = n.kind.resource.GroupVersion(), n.kind.kind
	for i := range n.owners {
		if uid := n.owners[i].UID; !slices.Contains(v.owners, uid) {
			v.owners = append(v.owners, uid)
		}
	}
	slices.Sort(v.owners)
	return v
}

// heardFrom takes who a virtual node is from a reference to it.
func (v *vertex) heardFrom(ref *metav1.OwnerReference) {
	if ref == nil {
		return
	}
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		version = schema.GroupVersion{Version: ref.APIVersion}
	}
	v.version, v.kind, v.name = version, ref.Kind, ref.Name
}

// label is what the picture writes on a node.
func (v *vertex) label() string {
	var b strings.Builder
	fmt.Fprintf(&b, "uid=%s\nnamespace=%s\n%s.%s", v.uid, v.namespace, v.kind, v.version.Version)
	if v.version.Group != "" {
		fmt.Fprintf(&b, ".%s", v.version.Group)
	}
	fmt.Fprintf(&b, "/%s\n", v.name)
	var flags []string
	for _, flag := range []struct {
		set  bool
		text string
	}{{v.state.terminating, "beingDeleted"}, {v.state.foreground, "deletingDependents"}, {v.virtual, "virtual"}, {v.missing, "missingFromGraph"}} {
		if flag.set {
			flags = append(flags, flag.text)
		}
	}
	if len(flags) > 0 {
		b.WriteString(strings.Join(flags, ",") + "\n")
	}
	return b.String()
}

// draw writes a picture in the language of Graphviz.
func draw(w io.Writer, vertices []vertex) error {
	var b strings.Builder
	b.WriteString("strict digraph full {\n")
	if len(vertices) > 0 {
		b.WriteString("  // Node definitions.\n")
	}
	var edges strings.Builder
	for i := range vertices {
		v := &vertices[i]
		fmt.Fprintf(&b, "  %q [\n", v.uid)
		for _, attribute := range []struct{ name, value string }{
			{"label", v.label()},
			{"group", v.version.Group}, {"version", v.version.Version}, {"kind", v.kind},
			{"namespace", v.namespace}, {"name", v.name}, {"uid", string(v.uid)},
			{"missing", fmt.Sprint(v.missing)}, {"beingDeleted", fmt.Sprint(v.state.terminating)},
			{"deletingDependents", fmt.Sprint(v.state.foreground)}, {"virtual", fmt.Sprint(v.virtual)},
		} {
			fmt.Fprintf(&b, "    %s=%q\n", attribute.name, attribute.value)
		}
		b.WriteString("  ];\n")
		for _, owner := range v.owners {
			fmt.Fprintf(&edges, "  %q -> %q;\n", v.uid, owner)
		}
	}
	if edges.Len() > 0 {
		b.WriteString("  // Edge definitions.\n" + edges.String())
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
