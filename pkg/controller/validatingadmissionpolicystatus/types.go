package validatingadmissionpolicystatus

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
)

// notes are what came of the lookups of one check, the last of each. The checker
// leaves out what it cannot look up and says nothing.
type notes map[string]error

// left are the types that are not served or have no schema.
func (n notes) left() []string {
	var left []string
	for _, what := range slices.Sorted(maps.Keys(n)) {
		if absent(n[what]) {
			left = append(left, what)
		}
	}
	return left
}

// failed is why the check is to be made again: lookups without an answer.
func (n notes) failed() error {
	var errs []error
	for _, what := range slices.Sorted(maps.Keys(n)) {
		if err := n[what]; err != nil && !absent(err) {
			errs = append(errs, fmt.Errorf("look up %s: %w", what, err))
		}
	}
	return errors.Join(errs...)
}

func absent(err error) bool {
	return meta.IsNoMatchError(err) || errors.Is(err, resolver.ErrSchemaNotFound) || errors.Is(err, errWithheld) || unserved(err)
}

// unserved reports whether the API server answered, and only the one behind it that
// serves the group did not, or with a document that nobody can read. That one may never
// come back.
func unserved(err error) bool {
	var syntax *json.SyntaxError
	var field *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &field) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusNotFound, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// mapper notes what a REST mapper does not know.
type mapper struct {
	meta.RESTMapper
	notes notes
}

// KindsFor is that of the mapper, noted.
func (m mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	kinds, err := m.RESTMapper.KindsFor(resource)
	m.notes[resource.String()] = err
	return kinds, err
}

// Reset makes the mapper ask again what is served, where it can.
func (m mapper) Reset() {
	if resettable, ok := m.RESTMapper.(meta.ResettableRESTMapper); ok {
		resettable.Reset()
	}
}

// lookup resolves kinds out of the published documents, and notes those that it
// cannot. S is the type of a schema.
type lookup[S any] struct {
	notes     notes
	known     *schemas
	published paths
	resolve   func(schema.GroupVersionKind) (S, error)
	now       time.Time
}

func newLookup[S any](n notes, known *schemas, published paths, now time.Time, resolve func(schema.GroupVersionKind) (S, error)) *lookup[S] {
	return &lookup[S]{notes: n, known: known, published: published, resolve: resolve, now: now}
}

// ResolveSchema returns the schema of a kind.
func (l *lookup[S]) ResolveSchema(kind schema.GroupVersionKind) (S, error) {
	found, err := l.known.get(kind, l.published.of(kind.GroupVersion()), l.now, func() (any, error) { return l.fresh(kind) })
	l.notes[kind.String()] = err
	resolved, _ := found.(S)
	return resolved, err
}

// fresh resolves a kind. What fails although the document was read lies in the document, in
// which any API server may publish what the libraries cannot take.
func (l *lookup[S]) fresh(kind schema.GroupVersionKind) (found S, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it cannot be resolved: %v", errWithheld, p)
		}
	}()
	if found, err = l.resolve(kind); err != nil && l.published.read(kind.GroupVersion()) {
		err = fmt.Errorf("%w: %w", errWithheld, err)
	}
	return found, err
}
