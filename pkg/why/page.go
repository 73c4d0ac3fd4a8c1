package why

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page and its style
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"ask":   func(a Asked) string { return linkTo(a.Kind, a.Namespace, a.Name) },
	"asked": func(kind, namespace, name string) Asked { return Asked{kind, namespace, name} },
}).Parse(pageText))

// policy lets a browser load nothing but the style that is in the page, and send the form
// nowhere else.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// deepestShown is the greatest indentation of a page.
const deepestShown = 5

// page is what the template shows. Links are relative to the path of the question, so that
// they hold behind a proxy with a path of its own.
type page struct {
	Title   string
	Style   template.CSS
	Asked   Asked
	Kinds   []string
	Problem *Problem
	Answer  *Answer
	Objects []shownObject
	// Process says who answers, and Command asks the same in a terminal.
	Process, Command string
}

type shownObject struct {
	Object
	In   int
	Link string
	Over *moment
	By   []shownController
	Left []LeftOut
}

type shownController struct {
	Controller
	Open            bool
	Path            string
	Try, Last, Next *moment
	Made            []shownDecision
}

type shownDecision struct {
	act.Decision
	When *moment
}

// moment is a time as a machine and as a person reads it.
type moment struct{ At, Shown string }

// momentOf is nil for no time.
func momentOf(t, now time.Time) *moment {
	if t.IsZero() {
		return nil
	}
	shown := t.UTC().Format("2006-01-02 15:04:05Z") + ", "
	if d := t.Sub(now); d > 0 {
		shown += "in " + inWords(d)
	} else {
		shown += inWords(-d) + " ago"
	}
	return &moment{t.UTC().Format(time.RFC3339), shown}
}

// linkTo is the address of another question, relative to the path of this one.
func linkTo(kind, namespace, name string) string {
	values := url.Values{"kind": {kind}}
	if namespace != "" {
		values.Set("namespace", namespace)
	}
	if name != "" {
		values.Set("name", name)
	}
	return "why?" + values.Encode()
}

// pageOf is the page of a question: of its answer, of the problem with it, or of neither
// when nothing has been asked yet.
func pageOf(asked Asked, by Process, kinds []string, a *Answer, p *Problem) page {
	shown := page{Title: "Why is it as it is?", Style: template.CSS(style), Asked: asked, Kinds: kinds, Answer: a, Problem: p}
	shown.Process = by.inWords(time.Time{})
	if p != nil {
		shown.Title = fmt.Sprintf("%d %s", p.Code, http.StatusText(p.Code))
	}
	if a == nil {
		return shown
	}
	shown.Asked, shown.Process = a.Asked, by.inWords(a.At)
	shown.Title = fmt.Sprintf("%s %s is %s", a.Asked.Kind, a.Asked.Name, a.Verdict)
	shown.Command = commandFor(a.Asked)
	for _, o := range a.Objects {
		shown.Objects = append(shown.Objects, a.show(o))
	}
	return shown
}

// harmless are words that a shell takes as they are: a link may bring others.
var harmless = regexp.MustCompile(`^[A-Za-z0-9.:_-]*$`)

// commandFor asks the same in a terminal; empty for names that a shell would not take as they are.
func commandFor(a Asked) string {
	if !harmless.MatchString(a.Name) || !harmless.MatchString(a.Namespace) {
		return ""
	}
	command := "kubectl kcm why " + strings.ToLower(a.Kind) + "/" + a.Name
	if a.Namespace != "" {
		command += " -n " + a.Namespace
	}
	return command
}

// inWords says who answers.
func (p Process) inWords(now time.Time) string {
	said := "Answered by this process"
	switch {
	case p.Shadow:
		said = "Answered by a shadow (it writes nothing, and says what its controllers would do)"
	case p.Identity != "":
		said = "Answered by " + p.Identity
	}
	switch {
	case !p.Since.IsZero():
		said += ", whose caches were started at " + p.Since.Format(time.RFC3339)
		if !now.IsZero() {
			said += ", " + inWords(now.Sub(p.Since)) + " ago"
		}
	case p.Leader != "":
		said += "; the leader is " + p.Leader + ", on " + p.where()
	}
	return said + "."
}

func (a *Answer) show(o Object) shownObject {
	kind := Kind{GroupKind: schema.GroupKind{Group: o.Group, Kind: o.Kind}}
	s := shownObject{Object: o, Link: linkTo(kind.String(), o.Namespace, o.Name), Over: momentOf(o.Until, a.At)}
	s.In = min(o.Depth-a.Objects[0].Depth, deepestShown)
	for _, c := range o.Controllers {
		shown := shownController{Controller: c, Path: strings.TrimPrefix(c.Page, "/debug/"),
			Try: momentOf(c.NextTry, a.At), Last: momentOf(c.LastLook, a.At), Next: momentOf(c.NextLook, a.At)}
		for _, d := range c.Decisions {
			shown.Made = append(shown.Made, shownDecision{d, momentOf(d.At, a.At)})
		}
		shown.Open = c.Verdict == Blocked || c.Verdict == Paused || c.Braked != ""
		s.By = append(s.By, shown)
	}
	s.Left = slices.DeleteFunc(slices.Clone(a.LeftOut), func(l LeftOut) bool { return l.Owner != Owner{o.Kind, o.Name} })
	return s
}

// write renders the page. It is not cached: an answer is about this moment.
func (p page) write(w http.ResponseWriter, code int) {
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, p); err != nil {
		http.Error(w, "render the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(code)
	_, _ = w.Write(out.Bytes())
}
