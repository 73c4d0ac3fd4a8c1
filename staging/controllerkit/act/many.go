package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// List reads live what there is of a kind in a namespace, page by page, for what is
// planned from the results. A list that expires between two pages is made again as a whole.
type List struct {
	// Of is an empty object of the kind, in the namespace. With a name that one alone is
	// listed: for an account that may not get it.
	Of client.Object
	// Limit is how many objects a page has; 0: there is one page.
	Limit int64
	// Within is how long a page may take; 0: as long as the reconcile may.
	Within time.Duration
	// Keep returns what is kept of a page and of those before it, which is nil before the
	// first. It is pure. What is kept in the end is in the result.
	Keep func(kept any, page client.ObjectList) any
}

// DeleteAll deletes what there is of a kind in a namespace. Whether anything is left, a
// list says.
type DeleteAll struct {
	// Of is an empty object of the kind, in the namespace.
	Of client.Object
	// Propagation is what becomes of dependents; the API's default if empty.
	Propagation metav1.DeletionPropagation
}

// Verb is what is done.
func (List) Verb() string { return "list" }

// Verb is what is done.
func (DeleteAll) Verb() string { return "deletecollection" }

// About returns an object of the kind, which has no name.
func (s List) About() client.Object { return s.Of }

// About returns an object of the kind, which has no name.
func (s DeleteAll) About() client.Object { return s.Of }

var errNoNamespace = errors.New("all objects of a kind are deleted in a namespace only, and none is given")

func (h *hand) removeAll(ctx context.Context, s DeleteAll) Result {
	if s.Of.GetNamespace() == "" {
		return Result{Became: Refused, Err: errNoNamespace}
	}
	may, rest := h.mayDeleteAll(ctx, s.Of)
	if rest != nil && consistency.WasWithheld(rest) == nil {
		return Result{Became: Refused, Err: rest} // of a count: nothing was written
	}
	if rest != nil {
		switch all, err := h.removeSome(ctx, s, may); {
		case err != nil:
			return h.failed(Events{}, err)
		case all:
			return Result{Became: Done}
		}
		return h.failed(Events{}, rest)
	}
	options := &client.DeleteAllOfOptions{ListOptions: client.ListOptions{Namespace: s.Of.GetNamespace(), Limit: int64(may)}}
	if s.Propagation != "" {
		options.PropagationPolicy = &s.Propagation
	}
	if err := h.client.DeleteAllOf(asCounted(ctx), blank(s.Of), options); err != nil {
		return h.failed(Events{}, err)
	}
	return Result{Became: Done}
}

// somePage is how many objects removeSome reads at once.
const somePage = 500

// removeSome deletes so many objects one by one, none that is on its way out already in the
// way that is asked for, and reports whether that were all of them. The API server would
// take the first ones of the list, and those again and again while their finalizers keep
// them.
func (h *hand) removeSome(ctx context.Context, s DeleteAll, most int) (all bool, err error) {
	options := &client.ListOptions{Namespace: s.Of.GetNamespace(), Limit: somePage}
	for most > 0 {
		page, err := h.listOf(s.Of)
		if err == nil {
			err = h.page(ctx, List{Within: counting}, page, options)
		}
		if err != nil {
			return false, err
		}
		err = meta.EachListItem(page, func(item runtime.Object) error {
			listed, is := item.(client.Object)
			if !is || most == 0 || listed.GetDeletionTimestamp() != nil && !s.hastens(listed) {
				return nil
			}
			most--
			return h.removeListed(ctx, s, listed)
		})
		if err != nil || page.GetContinue() == "" {
			return err == nil && most > 0, err
		}
		options.Continue = page.GetContinue()
	}
	return false, nil
}

// hastens reports whether the deletion ends a wait for dependents, which an object that is
// being deleted already waits for.
func (s DeleteAll) hastens(of client.Object) bool {
	return s.Propagation == metav1.DeletePropagationBackground && slices.ContainsFunc(of.GetFinalizers(), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
}

func (h *hand) removeListed(ctx context.Context, s DeleteAll, listed client.Object) error {
	of := blank(s.Of)
	of.SetName(listed.GetName())
	of.SetUID(listed.GetUID())
	err := h.remove(asCounted(ctx), Delete{Of: of, Propagation: s.Propagation, Listed: true}).Err
	if apierrors.IsConflict(err) {
		return nil // another object has its name
	}
	return err
}

func (h *hand) list(ctx context.Context, s List) Result {
	kept, err := h.pages(ctx, s)
	if apierrors.IsResourceExpired(err) && s.Limit > 0 {
		s.Limit = 0
		kept, err = h.pages(ctx, s)
	}
	if err != nil {
		return Result{Became: Refused, Err: err}
	}
	return Result{Became: Done, Kept: kept}
}

func (h *hand) pages(ctx context.Context, s List) (kept any, err error) {
	options := &client.ListOptions{Namespace: s.Of.GetNamespace(), Limit: s.Limit}
	if name := s.Of.GetName(); name != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name)
	}
	for {
		page, err := h.listOf(s.Of)
		if err == nil {
			err = h.page(ctx, s, page, options)
		}
		if err != nil {
			return nil, err
		}
		kept = s.Keep(kept, page)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return kept, nil
		}
	}
}

func (h *hand) page(ctx context.Context, s List, into client.ObjectList, options *client.ListOptions) error {
	if s.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Within)
		defer cancel()
	}
	return h.client.List(ctx, into, options)
}

// listOf returns an empty list of the kind of an object.
func (h *hand) listOf(o client.Object) (client.ObjectList, error) {
	kind, err := h.client.GroupVersionKindFor(o)
	if err != nil {
		return nil, err
	}
	kind.Kind += "List"
	if _, is := o.(*metav1.PartialObjectMetadata); is {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		return list, nil
	}
	made, err := h.client.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	list, is := made.(client.ObjectList)
	if !is {
		return nil, fmt.Errorf("act: %T is no list", made)
	}
	return list, nil
}
