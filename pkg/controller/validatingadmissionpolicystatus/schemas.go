package validatingadmissionpolicystatus

import (
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/openapi"
)

// keepSchemas is for how long an unused schema is kept. Those of large kinds take
// megabytes, and policies come in bunches.
const keepSchemas = time.Minute

// schemas keeps resolved schemas for as long as the API server publishes the same
// document.
type schemas struct {
	mu    sync.Mutex
	known map[schema.GroupVersionKind]resolved
}

type resolved struct {
	// document is the address of the document, with its hash.
	document string
	schema   any
	used     time.Time
}

// get returns the schema of a kind out of this document, by resolve if it is not
// known. One at a time: policies that come together are about the same kinds.
func (s *schemas) get(kind schema.GroupVersionKind, document string, now time.Time, resolve func() (any, error)) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.known[kind]
	if !ok || found.document != document {
		fresh, err := resolve()
		if err != nil {
			return nil, err
		}
		found = resolved{document: document, schema: fresh}
	}
	found.used = now
	if s.known == nil {
		s.known = map[schema.GroupVersionKind]resolved{}
	}
	s.known[kind] = found
	return found.schema, nil
}

// drop forgets what was not used for a while, and reports whether anything is left.
func (s *schemas) drop(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind, r := range s.known {
		if now.Sub(r.used) >= keepSchemas {
			delete(s.known, kind)
		}
	}
	return len(s.known) > 0
}

// paths is the list of published documents, read once for a check.
type paths map[string]openapi.GroupVersion

// errWithheld is that the list of documents was read, and one of them is refused, broken or
// not answered. It may stay so: the kinds in it are left out, and the rest is reported.
var errWithheld = errors.New("the document is withheld")

// newPaths makes each document be read once, however many kinds are in it.
func newPaths(list map[string]openapi.GroupVersion) paths {
	p := paths{}
	for path, published := range list {
		p[path] = document{published, sync.OnceValues(func() ([]byte, error) {
			read, err := published.Schema(runtime.ContentTypeJSON)
			if apierrors.IsForbidden(err) || apierrors.IsInternalError(err) || utilnet.IsTimeout(err) && elsewhere(path) {
				err = fmt.Errorf("%w: %w", errWithheld, err)
			}
			return read, err
		})}
	}
	return p
}

// Paths returns the list.
func (p paths) Paths() (map[string]openapi.GroupVersion, error) { return p, nil }

// of is the address of the document of a group version, with its hash; empty if
// none is published.
func (p paths) of(version schema.GroupVersion) string {
	if published, ok := p[pathOf(version)]; ok {
		return published.ServerRelativeURL()
	}
	return ""
}

// read reports whether the document of a group version could be read.
func (p paths) read(version schema.GroupVersion) bool {
	published, ok := p[pathOf(version)]
	if !ok {
		return false
	}
	_, err := published.Schema(runtime.ContentTypeJSON)
	return err == nil
}

func pathOf(version schema.GroupVersion) string {
	if version.Group == "" {
		return "api/" + version.Version
	}
	return "apis/" + version.String()
}

type document struct {
	openapi.GroupVersion
	json func() ([]byte, error)
}

// Schema returns the document, which is read as JSON only.
func (d document) Schema(string) ([]byte, error) { return d.json() }
