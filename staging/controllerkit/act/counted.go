package act

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

type counted struct{}

// Counted reports whether the deletion that ctx belongs to was let through by the brake,
// so that no gate on its way counts it once more.
func Counted(ctx context.Context) bool { return ctx.Value(counted{}) != nil }

func asCounted(ctx context.Context) context.Context { return context.WithValue(ctx, counted{}, true) }

// turn is that of a reconcile whose deletions of a resource are held back: it has one,
// however many they are.
type turn struct {
	resource schema.GroupResource
	withheld error
}

// mayDelete returns how many objects like this one may be deleted now, up to so many, and
// why that is fewer.
func (h *hand) mayDelete(like client.Object, most int) (int, error) {
	if h.limits == nil || h.limits.Brake == nil || h.dryRun {
		return most, nil
	}
	resource := h.resource(like)
	h.turns.Lock()
	defer h.turns.Unlock()
	now := h.clock.Now()
	for _, t := range h.turns.all {
		if t.resource == resource && consistency.WasWithheld(t.withheld).Until.After(now) {
			return 0, t.withheld
		}
	}
	may, rest := h.limits.Brake.Take(resource, most)
	if rest != nil {
		h.turns.all = slices.DeleteFunc(h.turns.all, func(t turn) bool { return t.resource == resource })
		h.turns.all = append(h.turns.all, turn{resource, rest})
	}
	return may, rest
}

// counting is how long it may take to count what is to be deleted.
const counting = 10 * time.Second

// mayDeleteAll returns how many objects of a kind in a namespace may be deleted now, 0 for
// no limit, and why that is not all; 0 with a reason is none. What nobody can list counts
// as one.
func (h *hand) mayDeleteAll(ctx context.Context, of client.Object) (limit int, rest error) {
	if h.limits == nil || !h.limits.Brake.Brakes(h.resource(of)) || h.dryRun {
		return 0, nil
	}
	there, err := h.count(ctx, of)
	switch {
	case err == nil:
		return h.mayDelete(of, max(there, 1))
	case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err), consistency.NotFound(err):
		_, rest = h.mayDelete(of, 1)
		return 0, rest
	}
	return 0, fmt.Errorf("count what is to be deleted: %w", err)
}

// count returns how many objects of a kind there are in a namespace. Where the API server
// does not say it, that is more than are deleted at once.
func (h *hand) count(ctx context.Context, of client.Object) (int, error) {
	list, err := h.listOf(of)
	if err != nil {
		return 0, err
	}
	if err := h.page(ctx, List{Within: counting}, list, &client.ListOptions{Namespace: of.GetNamespace(), Limit: 1}); err != nil {
		return 0, err
	}
	there := meta.LenList(list)
	switch more := list.GetRemainingItemCount(); {
	case more != nil:
		there += int(*more)
	case list.GetContinue() != "":
		there = math.MaxInt32
	}
	return there, nil
}
