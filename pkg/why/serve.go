package why

import (
	"net/http"

	"github.com/munnerz/goautoneg"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// ServeHTTP answers the question of a request: as a page to who asks for HTML before
// JSON, as browsers do, and as JSON to all others.
func (w *World) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	rw.Header().Set("Vary", "Accept")
	rw.Header().Set("Cache-Control", "no-store")
	html := goautoneg.Negotiate(req.Header.Get("Accept"), []string{"application/json", "text/html"}) == "text/html"
	values := req.URL.Query()
	asked := Asked{values.Get("kind"), values.Get("namespace"), values.Get("name")}
	if html && !values.Has("name") && readable(req) {
		w.form(rw, asked)
		return
	}
	answer, problem := w.Answer(req)
	switch {
	case html && problem != nil:
		pageOf(asked, problem.Process, w.names(), nil, problem).write(rw, problem.Code)
	case html:
		pageOf(asked, answer.Process, w.names(), answer, nil).write(rw, http.StatusOK)
	case problem != nil:
		debug.WriteJSON(rw, problem.Code, problem)
	default:
		debug.WriteJSON(rw, http.StatusOK, answer)
	}
}

// Answer answers the question of a request, in no form yet.
func (w *World) Answer(req *http.Request) (*Answer, *Problem) {
	by := w.Process()
	answer, wrong := w.answer(req, by)
	if wrong != nil {
		wrong.Process = by
	}
	return answer, wrong
}

func (w *World) answer(req *http.Request, by Process) (*Answer, *Problem) {
	if !readable(req) {
		return nil, problem(http.StatusMethodNotAllowed, "method "+req.Method+" is not allowed: ask with GET")
	}
	question, wrong := QuestionOf(req.URL.Query())
	if wrong != nil {
		return nil, wrong
	}
	return w.Ask(question, by)
}

func readable(req *http.Request) bool {
	return req.Method == http.MethodGet || req.Method == http.MethodHead
}

// names are the kinds that a form offers.
func (w *World) names() []string {
	if kinds := w.Kinds(); kinds != nil {
		return kinds.Names()
	}
	return nil
}

// form is the page before a question; on a process that could not answer one it says so.
func (w *World) form(rw http.ResponseWriter, asked Asked) {
	by := w.Process()
	if w.Kinds() == nil {
		not := problem(http.StatusServiceUnavailable, standby(by))
		pageOf(asked, by, nil, nil, not).write(rw, not.Code)
		return
	}
	pageOf(asked, by, w.names(), nil, nil).write(rw, http.StatusOK)
}
