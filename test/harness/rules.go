package harness

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Asked is what a request is about.
type Asked struct {
	// Verb is create, update, patch, delete, get, list or watch. A watch that
	// begins with all objects is a list.
	Verb                         string
	Group, Resource, Subresource string
	Namespace                    string
}

// Discovery is the resource of the requests that ask what is served.
const Discovery = "discovery"

var requestInfo = &request.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// AskedOf reads a request as the API server does.
func AskedOf(r *http.Request) Asked {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil {
		return Asked{}
	}
	if !info.IsResourceRequest {
		if first, _, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/"); first != "api" && first != "apis" {
			return Asked{Verb: info.Verb}
		}
		return Asked{Verb: info.Verb, Resource: Discovery}
	}
	asked := Asked{Verb: info.Verb, Group: info.APIGroup, Resource: info.Resource, Subresource: info.Subresource, Namespace: info.Namespace}
	switch {
	case asked.Verb == "deletecollection":
		asked.Verb = "delete"
	case asked.Verb == "watch" && r.URL.Query().Get("sendInitialEvents") == "true":
		asked.Verb = "list"
	}
	return asked
}

// Verbs are the words for verbs that a Rule knows.
var Verbs = []string{"create", "update", "patch", "delete", "get", "list", "watch", "write", "read", "*"}

// isVerb reports whether a word of Verbs stands for what was asked.
func (a Asked) isVerb(word string) bool {
	reads := slices.Contains([]string{"get", "list", "watch"}, a.Verb)
	switch word {
	case "*":
		return true
	case "read":
		return reads
	case "write":
		return !reads
	}
	return word == a.Verb
}

// Is reports whether it is about one of these resources. A resource is a plural,
// with its group where needed, and a subresource, which may be "*"; "*" is any
// resource with any subresource.
func (a Asked) Is(resources []string) bool {
	return slices.ContainsFunc(resources, func(one string) bool {
		resource, subresource, _ := strings.Cut(one, "/")
		switch {
		case a.Resource == "":
			return false
		case one == "*":
			return a.Resource != Discovery
		case resource != "*" && resource != a.Resource && resource != a.Resource+"."+a.Group:
			return false
		}
		return subresource == a.Subresource || subresource == "*" && a.Subresource != ""
	})
}

// incidental reports whether it is what a process does beside its work, which
// only a rule is about that names it.
func (a Asked) incidental() bool {
	return a.Resource == "events" || a.Resource == "leases" || a.Subresource == "token" || strings.HasSuffix(a.Resource, "reviews")
}

// Rule says what goes wrong with which requests.
type Rule struct {
	Fault Fault
	// Verb is one of Verbs, and Resources are as Asked.Is takes them.
	Verb      string
	Resources []string
	// Times is how many requests it goes wrong with; zero means all.
	Times int
	// Share is the percentage of the requests, by a fixed seed; zero means all.
	Share int
}

func (r Rule) covers(a Asked) bool {
	if a.incidental() && slices.Equal(r.Resources, []string{"*"}) {
		return false
	}
	return a.isVerb(r.Verb) && a.Is(r.Resources)
}

// Rules are all that goes wrong with the requests about one namespace, those of
// the cluster itself, and objects without a namespace.
type Rules struct {
	namespace string

	mu    sync.Mutex
	rules []*activeRule
}

type activeRule struct {
	Rule
	seed  uint64
	dice  map[string]*rand.Rand
	count int
}

// NewRules begins without any. Names of further namespaces hold the given one.
func NewRules(namespace string) *Rules { return &Rules{namespace: namespace} }

// Add puts another rule after those that there are. The first that ends a
// request decides; delays and stalls come on top.
func (r *Rules) Add(rule Rule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, rule)
	r.rules = append(r.rules, &activeRule{Rule: rule, seed: hash.Sum64(), dice: map[string]*rand.Rand{}})
}

// Unused returns the first rule that has not come true, or not as often as it says.
func (r *Rules) Unused() (Rule, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rule := range r.rules {
		if rule.count < max(rule.Times, 1) {
			return rule.Rule, true
		}
	}
	return Rule{}, false
}

// Fault is what goes wrong with a request.
func (r *Rules) Fault(req *http.Request) Fault {
	asked := AskedOf(req)
	if asked.Namespace != "" && !strings.Contains(asked.Namespace, r.namespace) && !strings.HasPrefix(asked.Namespace, "kube-") {
		return Fault{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var fault Fault
	for _, rule := range r.rules {
		if !rule.covers(asked) || rule.Fault.ends() && fault.ends() || !rule.hits(asked) {
			continue
		}
		rule.count++
		delay, stall := fault.Delay+rule.Fault.Delay, fault.Stall+rule.Fault.Stall
		if rule.Fault.ends() {
			fault = rule.Fault
		}
		fault.Delay, fault.Stall = delay, stall
	}
	return fault
}

// hits draws for each kind of request on its own, so that two processes whose
// requests come in another order fare alike.
func (r *activeRule) hits(a Asked) bool {
	if r.Times > 0 && r.count >= r.Times {
		return false
	}
	if r.Share == 0 {
		return true
	}
	kind := fmt.Sprint(a.Verb, a.Group, a.Resource, a.Subresource)
	if r.dice[kind] == nil {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(kind))
		r.dice[kind] = rand.New(rand.NewPCG(r.seed, hash.Sum64()))
	}
	return r.dice[kind].IntN(100) < r.Share
}
