package garbagecollector

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// page is what the debug endpoint shows.
type page struct {
	// Objects are those that are followed, Heard the owners that are only heard of.
	Objects int `json:"objects"`
	Heard   int `json:"ownersOnlyHeardOf"`
	// Waiting are objects whose owners could not be found out, Held those that were
	// deleted without their dependents and wait until all of these are known.
	Waiting int `json:"waiting"`
	Held    int `json:"heldUntilAllIsRead"`
	// Unavailable resources cannot be read, Undiscovered APIs not even be asked for theirs.
	Unavailable  []unavailable     `json:"unavailable"`
	Undiscovered map[string]string `json:"undiscovered,omitempty"`
	Resources    int               `json:"resources"`
	Loops        []runner.Snapshot `json:"loops"`
}

type unavailable struct {
	Resource string      `json:"resource"`
	Error    string      `json:"error"`
	Since    metav1.Time `json:"since"`
	// Listed says that its objects were read once and are known as they were then.
	Listed bool `json:"listed"`
}

// ServeHTTP shows the graph below /graph, with ?uid= what has to do with these
// objects; with ?key= what the loops know of one; else what is followed and what
// cannot be.
func (c *Controller) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	_, rest, _ := strings.Cut(req.URL.Path, name)
	switch {
	case rest == "/graph":
		c.serveGraph(w, req)
	case strings.Trim(rest, "/") != "":
		http.NotFound(w, req)
	case req.URL.Query().Has("key"):
		c.Group.ServeHTTP(w, req)
	default:
		debug.WriteJSON(w, http.StatusOK, c.page())
	}
}

func (c *Controller) serveGraph(w http.ResponseWriter, req *http.Request) {
	asked, some := req.URL.Query()["uid"]
	uids := make([]types.UID, 0, len(asked))
	for _, uid := range asked {
		uids = append(uids, types.UID(uid))
	}
	w.Header().Set("Content-Type", "text/vnd.graphviz")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = draw(w, c.graph.picture(uids, !some))
}

func (c *Controller) page() page {
	p := page{Unavailable: []unavailable{}, Undiscovered: map[string]string{}}
	p.Objects, p.Heard = c.graph.count()
	for _, state := range c.followed.States() {
		p.Resources++
		if state.Err != nil {
			p.Unavailable = append(p.Unavailable, unavailable{
				Resource: state.Resource.GroupVersionResource.GroupResource().String(), Error: state.Err.Error(), Since: metav1.NewTime(state.Since), Listed: state.Listed})
		}
	}
	for version, err := range c.followed.Undiscovered() {
		p.Undiscovered[version.String()] = err.Error()
	}
	c.mu.Lock()
	p.Waiting, p.Held = len(c.waiting), len(c.held)
	c.mu.Unlock()
	for _, loop := range []*runner.Runner[key]{c.looks, c.orphans, c.findings} {
		p.Loops = append(p.Loops, loop.Snapshot())
	}
	return p
}

// count returns how many objects the graph holds, and how many owners only heard of.
func (g *graph) count() (objects, heard int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.nodes {
		if n.virtual() {
			heard++
		}
	}
	return len(g.nodes) - heard, heard
}
