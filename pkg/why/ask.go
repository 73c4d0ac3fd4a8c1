package why

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
)

// Cache is one of a kind.
type Cache struct {
	Indexer toolscache.Indexer
	// Synced: it has held all objects once.
	Synced bool
	// Part: it holds only some objects of its kind, or was not made with indexes.
	Part bool
}

// World is where answers come from. Its functions may be called at the same time.
type World struct {
	Now func() time.Time
	// Process is who answers.
	Process func() Process
	// Kinds are what is served; nil as long as nobody has asked, as on a standby.
	Kinds func() *Kinds
	// Caches are those that hold objects of a kind: one with all of them, whole or as
	// metadata, before those with some of them.
	Caches func(Kind) []Cache
	// Works are the controllers that work on a kind, the one that it is for first.
	Works func(schema.GroupKind) []Work
	// Running returns a controller, as it is for objects of a namespace.
	Running func(controller, namespace string) Running
}

// Question asks why an object is as it is. The kind is as a user writes it.
type Question struct {
	Kind, Namespace, Name string
}

// parameters are those of a question.
var parameters = []string{"kind", "namespace", "name"}

// QuestionOf reads the parameters of a request, and names all that is wrong with them.
func QuestionOf(values url.Values) (Question, *Problem) {
	var wrong []string
	for name, given := range values {
		switch {
		case !slices.Contains(parameters, name):
			wrong = append(wrong, fmt.Sprintf("unknown parameter %q", name))
		case len(given) > 1:
			wrong = append(wrong, fmt.Sprintf("parameter %q is given %d times", name, len(given)))
		}
	}
	for _, name := range []string{"kind", "name"} {
		if values.Get(name) == "" {
			wrong = append(wrong, fmt.Sprintf("parameter %q is missing", name))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return Question{}, problem(http.StatusBadRequest, strings.Join(wrong, "; ")+": ask with ?kind=deployment&namespace=default&name=web")
	}
	return Question{values.Get("kind"), values.Get("namespace"), values.Get("name")}, nil
}

// problem is filled with who answers by Answer.
func problem(code int, message string, kinds ...string) *Problem {
	return &Problem{APIVersion: APIVersion, Kind: ProblemKind, Code: code, Message: message, Kinds: kinds}
}

// Ask answers a question, or says why it cannot be answered. By is who answers.
func (w *World) Ask(q Question, by Process) (*Answer, *Problem) {
	now := w.Now().UTC()
	a := &Answer{APIVersion: APIVersion, Kind: AnswerKind, At: now, Process: by, Objects: []Object{}, Asked: Asked(q)}
	kinds := w.Kinds()
	if kinds == nil {
		return nil, problem(http.StatusServiceUnavailable, standby(a.Process))
	}
	kind, ok := kinds.Find(q.Kind)
	switch {
	case !ok:
		return nil, problem(http.StatusNotFound, fmt.Sprintf("the API server serves no kind %q", q.Kind), kinds.Names()...)
	case kind.Namespaced && q.Namespace == "":
		return nil, problem(http.StatusBadRequest, fmt.Sprintf("parameter \"namespace\" is missing: %s is in a namespace", kind.Kind))
	case !kind.Namespaced:
		q.Namespace = ""
	}
	a.Asked.Kind, a.Asked.Namespace = kind.String(), q.Namespace
	l := &look{World: w, kinds: kinds, now: now, since: a.Process.Since, seen: map[string]bool{}}
	items := l.chain(kind, q.Namespace, q.Name)
	for i := range items {
		a.Objects = append(a.Objects, items[i].Object)
	}
	a.LeftOut, a.Nearest = l.left, l.nearest
	a.Verdict, a.Sentence = conclusion(items)
	return a, nil
}

// standby says who can answer in place of a process that knows no objects.
func standby(p Process) string {
	said := "This process waits for leadership and knows no objects; nobody leads."
	switch {
	case p.Leading:
		return "This process leads and has not filled its caches yet: ask again in some seconds."
	case p.Leader != "":
		said = fmt.Sprintf("This process waits for leadership and knows no objects: ask the leader, %s, on %s.", p.Leader, p.where())
	case p.Identity == "":
		said = "This process starts and knows no objects yet: ask again in some seconds."
	}
	if p.LeaseError != "" {
		said += " Its last request for the lease failed: " + short(p.LeaseError)
	}
	return said
}

// where is the place of the leader.
func (p Process) where() string {
	if p.LeaderAddress == "" {
		return p.LeaderAt
	}
	return p.LeaderAt + " (" + p.LeaderAddress + ")"
}

// conclusion is the verdict of all, and the sentence of what is decisive.
func conclusion(items []item) (Verdict, string) {
	asked := &items[slices.IndexFunc(items, func(i item) bool { return i.Depth == 0 })]
	switch {
	case asked.Verdict == Unknown && asked.Known:
		return Unknown, fmt.Sprintf("Whether %s is as it should be is not known: %s.", named(asked), asked.Sentence)
	case asked.Verdict == Unknown:
		return Unknown, fmt.Sprintf("Nothing certain is known of %s: %s.", named(asked), asked.Sentence)
	}
	most := &items[decisive(items)]
	if most.Depth == 0 || most.Verdict == Complete {
		return asked.Verdict, fmt.Sprintf("%s is %s: %s.", named(asked), asked.Verdict, asked.Sentence)
	}
	verb := "is " + string(most.Verdict) + " at"
	return most.Verdict, fmt.Sprintf("%s %s %s %s: %s.", named(asked), verb, most.Kind, most.Name, most.Sentence)
}

// named is how a sentence names an object.
func named(i *item) string {
	return strings.TrimSuffix(i.Kind+" "+strings.TrimPrefix(i.Namespace+"/"+i.Name, "/"), "/")
}
