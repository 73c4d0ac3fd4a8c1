package why

import (
	"encoding/json"
	"net/http"
)

// ServeHTTP answers the question of a request as JSON.
func (w *World) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	answer, problem := w.Answer(req)
	if problem != nil {
		writeJSON(rw, problem.Code, problem)
		return
	}
	writeJSON(rw, http.StatusOK, answer)
}

// Answer answers the question of a request, in no form yet.
func (w *World) Answer(req *http.Request) (*Answer, *Problem) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return nil, problem(http.StatusMethodNotAllowed, "method "+req.Method+" is not allowed: ask with GET")
	}
	question, wrong := QuestionOf(req.URL.Query())
	if wrong != nil {
		return nil, wrong
	}
	return w.Ask(question)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(value)
}
