package storageversionmigrator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pageSize is how many objects are migrated in one go; between two pages other
// migrations have their turn, and a stop comes through.
const pageSize = 500

// errRefused is in the error of a page that fails its migration.
var errRefused = errors.New("refused")

// place is how far a migration has come. It is not kept over a restart: what is
// stored already costs a patch that writes nothing.
type place struct {
	uid      types.UID
	target   target
	next     string
	migrated int
}

// places are the migrations under way, by name.
type places struct {
	mu sync.Mutex
	of map[string]*place
}

func (p *places) get(m *migration) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.of[m.Name]; found != nil && found.uid == m.UID {
		return found
	}
	return nil
}

func (p *places) set(m *migration, t target) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of[m.Name] = &place{uid: m.UID, target: t}
	return p.of[m.Name]
}

func (p *places) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, name)
}

// migratePage migrates the objects from the place on and moves it. All is done
// when it returns true.
func (c *Controller) migratePage(ctx context.Context, m *migration, at *place) (done bool, err error) {
	list, err := c.metadata.Resource(at.target.gvr).List(ctx, metav1.ListOptions{Limit: pageSize, Continue: at.next})
	if apierrors.IsResourceExpired(err) {
		// The snapshot is gone; the token in the answer goes on in the present.
		var status apierrors.APIStatus
		at.next = ""
		if errors.As(err, &status) {
			at.next = status.Status().ListMeta.Continue
		}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("list %s: %w", at.target.gvr.GroupResource(), err)
	}
	var errs []error
	for i := range list.Items {
		if object := &list.Items[i]; !stored(object, m.Status.ResourceVersion) {
			err := c.migrate(ctx, at, object)
			if errors.Is(err, errRefused) {
				return false, err
			}
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	at.next = list.Continue
	return at.next == "", nil
}

func (c *Controller) migrate(ctx context.Context, at *place, object *metav1.PartialObjectMetadata) error {
	patch, err := emptyPatch(at.target, object)
	if err != nil {
		return err
	}
	objects := c.metadata.Resource(at.target.gvr)
	options := metav1.PatchOptions{FieldManager: name}
	if at.target.namespaced {
		_, err = objects.Namespace(object.Namespace).Patch(ctx, object.Name, types.ApplyPatchType, patch, options)
	} else {
		_, err = objects.Patch(ctx, object.Name, types.ApplyPatchType, patch, options)
	}
	switch judge(err) {
	case migrated:
		at.migrated++
		return nil
	case refused:
		return refusedError{err}
	}
	return fmt.Errorf("migrate %s %s/%s: %w", at.target.gvr.GroupResource(), object.Namespace, object.Name, err)
}

// refusedError is the answer of an API server that will not write an object.
type refusedError struct{ answer error }

func (e refusedError) Error() string        { return e.answer.Error() }
func (e refusedError) Unwrap() error        { return e.answer }
func (e refusedError) Is(target error) bool { return target == errRefused }
