package resourcequota

import (
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// unset is a version of a quota whose status is to be written.
func unset(number int) *corev1.ResourceQuota {
	q := limits("pods=1", "", "")
	q.ResourceVersion = strconv.Itoa(number)
	return q
}

// desk is a controller whose cache is filled by hand.
type desk struct {
	*Controller
	*fixture.Rig
}

func newDesk(t *testing.T) desk {
	t.Helper()
	rig := fixture.New(fake.NewClientset(), noon)
	core := rig.In.Core().V1()
	c, err := New(Informers{Quotas: core.ResourceQuotas(), Pods: core.Pods()}, monitor.New(monitor.Options{}), rig.Hand(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return desk{c, rig}
}

func (d desk) reconcile(t *testing.T) {
	t.Helper()
	if err := d.primary.Reconcile(t.Context(), key("q")).Err(); err != nil {
		t.Error(err)
	}
}

// bring has the informer bring a quota.
func (d desk) bring(t *testing.T, q *corev1.ResourceQuota) {
	t.Helper()
	d.Cache(t, q)
	d.quotaChanged(runner.Change[corev1.ResourceQuota]{New: q}, d.primary.Runner)
}

// interrupted is a lister; something happens after each of its answers.
type interrupted struct {
	corelisters.ResourceQuotaLister
	happens func()
}

type interruptedIn struct {
	corelisters.ResourceQuotaNamespaceLister
	happens func()
}

func (i interrupted) ResourceQuotas(namespace string) corelisters.ResourceQuotaNamespaceLister {
	return interruptedIn{i.ResourceQuotaLister.ResourceQuotas(namespace), i.happens}
}

func (i interruptedIn) Get(name string) (*corev1.ResourceQuota, error) {
	q, err := i.ResourceQuotaNamespaceLister.Get(name)
	i.happens()
	return q, err
}

func TestWhatIsFollowedWhileAQuotaIsForgottenStays(t *testing.T) {
	made, changed := unset(2), unset(3)
	made.UID, changed.UID = "new", "new"
	for name, tc := range map[string]struct {
		meanwhile []*corev1.ResourceQuota
		follows   *corev1.ResourceQuota
		requests  string
	}{
		"nothing is":                       {},
		"another that has its name":        {[]*corev1.ResourceQuota{made}, made, "update resourcequotas/status"},
		"another, which has changed since": {[]*corev1.ResourceQuota{made, changed}, changed, "update resourcequotas/status"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.notes.follow(key("q"), unset(1), noon)
			d.notes.take(key("q"), outcome{broken: map[schema.GroupResource]bool{secrets: true}}, noon)
			d.quotas = interrupted{d.quotas, func() {
				for _, q := range tc.meanwhile {
					d.bring(t, q)
				}
				tc.meanwhile = nil
			}}
			d.reconcile(t)
			one := d.notes.all[key("q")]
			if (one == nil) != (tc.follows == nil) || one != nil && (one.charges.quota != tc.follows || len(one.told) > 0) {
				t.Errorf("it is known as %+v", one)
			}
			d.reconcile(t)
			if did := d.Requests(); did != tc.requests {
				t.Errorf("did %q", did)
			}
		})
	}
}

func TestAQuotaThatNobodyFollowsIsCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile *corev1.ResourceQuota
		follows   string
	}{
		"as the cache has it":         {nil, "1"},
		"an update in between counts": {unset(2), "2"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.Cache(t, unset(1))
			d.quotas = interrupted{d.quotas, func() {
				if tc.meanwhile != nil {
					d.bring(t, tc.meanwhile)
				}
			}}
			d.reconcile(t)
			if did, q := d.Requests(), d.notes.followed(key("q")); did != "update resourcequotas/status" || q.ResourceVersion != tc.follows {
				t.Errorf("did %q and follows version %s", did, q.ResourceVersion)
			}
		})
	}
}

func TestACacheGoesBackWithTheAPIServerOnly(t *testing.T) {
	another := unset(9)
	another.Name = "another"
	for name, tc := range map[string]struct {
		ours  bool // version 7 was written by us
		later *corev1.ResourceQuota
		sent  []string // the versions that were written
	}{
		"it goes back":                       {sent: []string{"3"}},
		"it does not show our own write yet": {ours: true, sent: []string{"3"}},
		"it goes back behind our own write":  {ours: true, later: another, sent: []string{"3", "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			var sent []string
			d.Client.PrependReactor("update", "resourcequotas", func(action clienttesting.Action) (bool, runtime.Object, error) {
				q := action.(clienttesting.UpdateAction).GetObject().(*corev1.ResourceQuota).DeepCopy()
				sent = append(sent, q.ResourceVersion)
				q.ResourceVersion = "7"
				return true, q, nil
			})
			d.Cache(t, unset(3))
			if tc.ours {
				d.reconcile(t)
			} else {
				d.notes.follow(key("q"), unset(7), noon)
			}
			if tc.later != nil {
				d.Cache(t, tc.later)
			}
			d.reconcile(t)
			if !slices.Equal(sent, tc.sent) {
				t.Errorf("wrote versions %v", sent)
			}
		})
	}
}
