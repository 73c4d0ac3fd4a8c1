package monitor

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	caches "github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// secrets is a server of Secrets whose lists and watches can be refused.
type secrets struct {
	client *fake.Clientset

	mu      sync.Mutex
	refused error
	version string
	open    *watch.FakeWatcher
}

func newSecrets() *secrets {
	s := &secrets{client: fake.NewClientset(), version: "7"}
	s.client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return true, &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: s.version}}, s.refused
	})
	s.client.PrependWatchReactor("secrets", func(clienttesting.Action) (bool, watch.Interface, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.refused != nil {
			return true, nil, s.refused
		}
		s.open = watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
		return true, s.open, nil
	})
	return s
}

// refuse ends the watch, if one is open, and answers reads with err from now on.
func (s *secrets) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
	if s.open != nil {
		s.open.Stop()
		s.open = nil
	}
}

func (s *secrets) answer(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.version = nil, version
}

func (s *secrets) watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open != nil
}

var secretsOf = schema.GroupResource{Resource: "secrets"}

// followSecrets follows Secrets, from a cache that some controller holds whole.
func followSecrets(t *testing.T, server *secrets) *Followed {
	t.Helper()
	shared := informers.NewSharedInformerFactory(server.client, 0)
	whole := shared.Core().V1().Secrets().Informer()
	set := New(Options{
		Discover: func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
			return []*metav1.APIGroup{group("", "v1")}, []*metav1.APIResourceList{lists("v1", "secrets")}, nil
		},
		Metadata: metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()), Period: 50 * time.Millisecond,
		Whole: func(Resource) (cache.SharedIndexInformer, bool) { return whole, true },
	})
	if err := set.Hear(whole); err != nil {
		t.Fatal(err)
	}
	followed := set.Follow(Interest{Name: "test", Wants: func(Resource) bool { return true }, Changed: (&recorder{}).changed})
	ctx, cancel := context.WithCancel(t.Context())
	shared.StartWithContext(ctx)
	var running sync.WaitGroup
	running.Go(func() { set.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		shared.Shutdown()
	})
	return followed
}

func TestAWholeCacheThatCannotBeReadAnyMoreIsTold(t *testing.T) {
	server := newSecrets()
	f := followSecrets(t, server)
	is := func(failing bool) func() bool {
		return func() bool {
			state, known := f.State(secretsOf)
			return known && state.Listed && (state.Err != nil) == failing
		}
	}
	fixture.Eventually(t, "the first list and its watch", func() bool { return is(false)() && server.watched() })
	if err := f.Unread(); err != nil {
		t.Fatal(err)
	}
	server.refuse(errors.New("no key to decrypt them"))
	fixture.Eventually(t, "what cannot be read any more is reported", is(true))
	if err := f.Unread(); err == nil || !strings.Contains(err.Error(), "no key to decrypt them") {
		t.Errorf("unread is %v", err)
	}
	server.answer("9")
	fixture.Eventually(t, "it is reported as read again", is(false))
	if state, _ := f.State(secretsOf); state.Recovered.IsZero() {
		t.Error("that it could not be read is forgotten at once")
	}
	if err := f.Unread(); err == nil || !strings.Contains(err.Error(), "could be read again only a moment ago") {
		t.Errorf("what was missed may be on its way: %v", err)
	}
}

func TestAWholeCacheThatRunsCannotBeHeard(t *testing.T) {
	shared := informers.NewSharedInformerFactory(newSecrets().client, 0)
	whole := shared.Core().V1().Secrets().Informer()
	ctx, cancel := context.WithCancel(t.Context())
	shared.StartWithContext(ctx)
	defer shared.Shutdown()
	defer cancel()
	fixture.Eventually(t, "the cache", whole.HasSynced)
	if New(Options{}).Hear(whole) == nil {
		t.Error("its errors are said to be heard")
	}
}

// What the rules wait for must not keep the changes of a cache from everybody else.
func TestRulesThatWaitHoldUpNoOtherHandler(t *testing.T) {
	client := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}})
	factory := caches.NewFactory(client, 0)
	whole, quick := factory.Core().V1().Secrets().Informer(), make(chan string, 10)
	_, err := whole.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { quick <- o.(*corev1.Secret).Name }})
	if err != nil {
		t.Fatal(err)
	}
	waits, release := make(chan struct{}, 10), make(chan struct{})
	w := &resourceWatch{informer: whole, wanted: []Interest{{Name: "slow", Changed: func(Resource, metav1.Object, metav1.Object, bool) {
		waits <- struct{}{}
		<-release
	}}}}
	if err := w.listen(); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	t.Cleanup(factory.Shutdown)
	defer close(release)
	for what, c := range map[string]func() bool{
		"a rule that waits":            func() bool { return len(waits) > 0 },
		"the handler that sees it all": func() bool { return len(quick) == 2 },
	} {
		fixture.Eventually(t, what, c)
	}
}
