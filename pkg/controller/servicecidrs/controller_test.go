package servicecidrs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

type parts struct {
	*Controller
	client *fake.Clientset
	shared informers.SharedInformerFactory
	events *record.FakeRecorder
}

// prepare returns a controller with these objects in its caches.
func prepare(t *testing.T, objects ...runtime.Object) parts {
	t.Helper()
	client := fake.NewClientset(objects...)
	shared := informers.NewSharedInformerFactory(client, 0)
	events := record.NewFakeRecorder(10)
	networking := shared.Networking().V1()
	hand := fixture.Hand(client, events)
	hand.Clock = testclock.NewFakeClock(noon)
	c, err := New(networking.ServiceCIDRs(), networking.IPAddresses(), hand)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		store := networking.ServiceCIDRs().Informer().GetStore()
		if _, ok := object.(*networkingv1.IPAddress); ok {
			store = networking.IPAddresses().Informer().GetStore()
		}
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return parts{c, client, shared, events}
}

// decided is what is decided of the ServiceCIDR of this name, as it is cached.
func (p parts) decided(t *testing.T, name string) decision {
	t.Helper()
	o, err := p.observe(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return decide(o, noon)
}

func TestOneThatIsGoneNeedsNothing(t *testing.T) {
	p := prepare(t)
	if err := p.Reconcile(t.Context(), "a").Err(); err != nil || len(p.client.Actions()) > 0 {
		t.Errorf("got %v and sent %v", err, p.client.Actions())
	}
}

func TestANewOneIsProtectedAndReady(t *testing.T) {
	p := prepare(t)
	fixture.Run(t, p.client, p.Run, p.shared)

	cidrs := p.client.NetworkingV1().ServiceCIDRs()
	if _, err := cidrs.Create(t.Context(), cidr("a", of("10.0.0.0/24"), finalizers()), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		got, err := cidrs.Get(ctx, "a", metav1.GetOptions{})
		return err == nil && len(got.Finalizers) == 1 && meta.IsStatusConditionTrue(got.Status.Conditions, "Ready"), nil
	})
	if err != nil {
		t.Fatal("waited in vain for the finalizer and the condition")
	}
}

func TestTheAddressesOfARangeAreRead(t *testing.T) {
	p := prepare(t, cidr("a", of("10.0.0.0/23"), deletedAgo(time.Minute)),
		address("10.0.2.1", managedBy, "IPv4"), address("10.0.0.9", "me", "IPv4"), address("fd00::1", managedBy, "IPv6"))
	if got := p.decided(t, "a"); !got.RemoveFinalizer {
		t.Errorf("got %v", got)
	}
	if err := p.shared.Networking().V1().IPAddresses().Informer().GetStore().Add(address("10.0.1.200", managedBy, "IPv4")); err != nil {
		t.Fatal(err)
	}
	if got := p.decided(t, "a"); got.RemoveFinalizer || !strings.Contains(got.Why, "10.0.1.200") {
		t.Errorf("got %v", got)
	}
}

func TestErrorsOfWrites(t *testing.T) {
	resource := networkingv1.Resource("servicecidrs")
	gone := apierrors.NewNotFound(resource, "a")
	refused := apierrors.NewForbidden(resource, "a", errors.New("policy"))
	unready := cidr("a", of("10.0.0.0/24"))
	for name, tc := range map[string]struct {
		cidr        *networkingv1.ServiceCIDR
		subresource string
		err         error
		fail        bool
		event       string
	}{
		"a finalizer that cannot be added is retried":        {cidr("a", finalizers(), isReady), "", refused, true, ""},
		"a status that is refused is retried, with an event": {unready, "status", refused, true, "Warning KubernetesServiceCIDRError The ServiceCIDR Status can not be set to Ready=True"},
		"a finalizer that cannot be removed is retried":      {cidr("a", deletedAgo(time.Minute)), "", refused, true, ""},
		"one that is gone before its finalizer is no error":  {cidr("a", deletedAgo(time.Minute)), "", gone, false, ""},
		"one that was made anew under its name is retried":   {cidr("a", deletedAgo(time.Minute)), "", apierrors.NewConflict(resource, "a", errors.New("UID")), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := prepare(t, tc.cidr)
			p.client.PrependReactor("patch", "servicecidrs", func(action clienttesting.Action) (bool, runtime.Object, error) {
				return action.GetSubresource() == tc.subresource, nil, tc.err
			})
			got := p.Reconcile(t.Context(), "a").Err()
			if (got != nil) != tc.fail || tc.fail && !errors.Is(got, tc.err) {
				t.Errorf("got error %v", got)
			}
			event := ""
			select {
			case event = <-p.events.Events:
			default:
			}
			if event != tc.event {
				t.Errorf("got event %q", event)
			}
		})
	}
}

func TestTheFinalizerComesBeforeTheStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		refuse bool
		want   string
	}{
		"both are written":                         {false, "/finalizers status/"},
		"without the finalizer it is not reported": {true, "/finalizers"},
	} {
		t.Run(name, func(t *testing.T) {
			p := prepare(t, cidr("a", finalizers()))
			var did []string
			p.client.PrependReactor("patch", "servicecidrs", func(action clienttesting.Action) (bool, runtime.Object, error) {
				field := ""
				if strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"finalizers"`) {
					field = "finalizers"
				}
				did = append(did, action.GetSubresource()+"/"+field)
				return tc.refuse, nil, apierrors.NewNotFound(networkingv1.Resource("servicecidrs"), "a")
			})
			if err := p.Reconcile(t.Context(), "a").Err(); (err != nil) != tc.refuse {
				t.Errorf("got %v", err)
			}
			if got := strings.Join(did, " "); got != tc.want {
				t.Errorf("did %s", got)
			}
			if len(p.events.Events) > 0 {
				t.Errorf("told %s", <-p.events.Events)
			}
		})
	}
}

func TestOnlyTheOneOfThatUIDIsFreed(t *testing.T) {
	p := prepare(t, cidr("a", deletedAgo(time.Minute)))
	var patch string
	p.client.PrependReactor("patch", "servicecidrs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch = string(action.(clienttesting.PatchAction).GetPatch())
		return false, nil, nil
	})
	p.Reconcile(t.Context(), "a")
	if want := `{"metadata":{"$deleteFromPrimitiveList/finalizers":["networking.k8s.io/service-cidr-finalizer"],"uid":"uid"}}`; patch != want {
		t.Errorf("got %s", patch)
	}
}

type woken map[string]bool

func (w woken) Add(key string)                       { w[key] = true }
func (w woken) AddAfter(key string, _ time.Duration) { w[key] = true }

func TestWhoIsWoken(t *testing.T) {
	p := prepare(t, cidr("going", of("10.0.0.0/24"), deletedAgo(0)), cidr("elsewhere", of("10.9.0.0/24"), deletedAgo(0)), cidr("staying", of("10.0.0.0/16")))
	ip := address("10.0.0.7", managedBy, "IPv4")
	cidrs := func(before, after *networkingv1.ServiceCIDR) woken {
		w := woken{}
		p.cidrChanged(runner.Change[networkingv1.ServiceCIDR]{Old: before, New: after}, w)
		return w
	}
	ips := func(before, after *networkingv1.IPAddress) woken {
		w := woken{}
		p.addressChanged(runner.Change[networkingv1.IPAddress]{Old: before, New: after}, w)
		return w
	}
	wide := cidr("wide", of("10.0.0.0/8"))
	for name, tc := range map[string]struct {
		got  woken
		want []string
	}{
		"a new one may free those that it covers":                 {cidrs(nil, wide), []string{"wide", "going", "elsewhere"}},
		"one that went may hold those that it covered":            {cidrs(cidr("small", of("10.0.0.0/28")), nil), []string{"small", "going"}},
		"a change concerns only the one that changed":             {cidrs(wide, wide), []string{"wide"}},
		"a second CIDR may free those that it covers":             {cidrs(cidr("one", of("10.3.0.0/16")), cidr("one", of("10.3.0.0/16", "10.0.0.0/15"))), []string{"one", "going"}},
		"one that was made anew counts as new":                    {cidrs(wide, cidr("wide", of("10.9.0.0/28"), func(c *networkingv1.ServiceCIDR) { c.UID = "new" })), []string{"wide", "going", "elsewhere"}},
		"an address that came concerns only those that are to go": {ips(nil, ip), []string{"going"}},
		"so does one that went":                                   {ips(ip, nil), []string{"going"}},
		"one that nobody manages any more may free them":          {ips(ip, address("10.0.0.7", "", "IPv4")), []string{"going"}},
		"nothing about an address changed":                        {ips(ip, ip), nil},
		"an address of somebody else concerns nobody":             {ips(nil, address("10.0.0.7", "me", "IPv4")), nil},
	} {
		if len(tc.got) != len(tc.want) {
			t.Errorf("%s: got %v", name, tc.got)
		}
		for _, key := range tc.want {
			if !tc.got[key] {
				t.Errorf("%s: got %v", name, tc.got)
			}
		}
	}
}
