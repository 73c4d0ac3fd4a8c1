package endpointslice

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// server keeps slices as the API server does; the answers to creates may get lost.
type server struct {
	*shell
	t     *testing.T
	there map[string]*discoveryv1.EndpointSlice
	// lose is how many answers to creates are still to be lost, refuse how many
	// creates are to be refused.
	lose, refuse int
}

func newServer(t *testing.T, cached ...runtime.Object) *server {
	s := &server{shell: newShell(t, Options{}, cached...), t: t, there: map[string]*discoveryv1.EndpointSlice{}}
	s.client.PrependReactor("create", "endpointslices", s.create)
	s.client.PrependReactor("get", "endpointslices", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.GetAction).GetName()
		if slice, ok := s.there[name]; ok {
			return true, slice, nil
		}
		return true, nil, apierrors.NewNotFound(endpointSlices, name)
	})
	return s
}

func (s *server) create(a clienttesting.Action) (bool, runtime.Object, error) {
	if s.refuse > 0 {
		s.refuse--
		return true, nil, apierrors.NewForbidden(endpointSlices, "", errors.New("quota"))
	}
	wanted := a.(clienttesting.CreateAction).GetObject().(*discoveryv1.EndpointSlice)
	if _, ok := s.there[wanted.Name]; ok {
		return true, nil, apierrors.NewAlreadyExists(endpointSlices, wanted.Name)
	}
	_, made, err := s.serve(a)
	slice := made.(*discoveryv1.EndpointSlice)
	s.there[slice.Name] = slice
	if s.lose > 0 {
		s.lose--
		return true, nil, errors.New("http2: stream closed")
	}
	return true, slice, err
}

func TestALostAnswerMakesNoSecondSlice(t *testing.T) {
	for name, tc := range map[string]struct {
		between func(*server)
		fails   int // how many syncs after the first fail
		want    int
	}{
		"the cache does not show the slice yet": {func(*server) {}, 0, 1},
		"the cache shows it":                    {func(s *server) { s.show() }, 0, 1},
		"pods came meanwhile":                   {func(s *server) { s.cache(s.t, pod(2, "n")) }, 1, 1},
		"the next answers are lost as well":     {func(s *server) { s.lose = 2; delete(s.there, s.only()) }, 1, 1},
		"it was deleted meanwhile":              {func(s *server) { delete(s.there, s.only()) }, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, service(), node("n", "a"), pod(1, "n"))
			s.lose = 1
			if err := s.sync(context.Background(), web).Err(); err == nil {
				t.Fatal("a lost answer is no success")
			}
			tc.between(s)
			for range tc.fails {
				if err := s.sync(context.Background(), web).Err(); err == nil {
					t.Fatal("no failure")
				}
				if len(s.writes.Behind(web)) > 0 { // what the runner waits for
					s.show()
				}
			}
			if err := s.sync(context.Background(), web).Err(); err != nil {
				t.Fatal(err)
			}
			if len(s.there) != tc.want {
				t.Errorf("%d slices: %v", len(s.there), s.there)
			}
			s.show()
			if err := s.sync(context.Background(), web).Err(); err != nil {
				t.Errorf("once all is shown: %v", err)
			}
			if len(s.there) != tc.want {
				t.Errorf("%d slices once all is shown", len(s.there))
			}
		})
	}
}

func TestARefusedNameIsUsedAgain(t *testing.T) {
	s := newServer(t, service(dualStack), node("n", "a"), pod(1, "n"))
	s.refuse = 1
	if err := s.sync(context.Background(), web).Err(); err == nil {
		t.Fatal("no failure")
	}
	s.show()
	refused := s.names.untold[kind{web, discoveryv1.AddressTypeIPv4}] + s.names.untold[kind{web, discoveryv1.AddressTypeIPv6}]
	if err := s.sync(context.Background(), web).Err(); err != nil {
		t.Fatal(err)
	}
	if len(s.there) != 2 || s.there[refused] == nil {
		t.Errorf("%v, first asked for %s", s.there, refused)
	}
	if len(s.names.untold) != 0 {
		t.Errorf("still remembers %v", s.names.untold)
	}
}

func TestASliceOfSomebodyElseIsNotTakenOver(t *testing.T) {
	s := newServer(t, service(), node("n", "a"), pod(1, "n"))
	s.names.untold = map[kind]string{{web, discoveryv1.AddressTypeIPv4}: "web-taken"}
	s.there["web-taken"] = &discoveryv1.EndpointSlice{}
	if err := s.sync(context.Background(), web).Err(); err == nil || !strings.Contains(err.Error(), "somebody else's") {
		t.Errorf("got %v", err)
	}
	if err := s.sync(context.Background(), web).Err(); err != nil || len(s.there) != 2 {
		t.Errorf("the next try: %v, %d slices", err, len(s.there))
	}
}

func TestNamesAreThoseThatTheAPIServerWouldGenerate(t *testing.T) {
	for prefix, want := range map[string]string{
		"web-":                        `^web-[bcdfghjklmnpqrstvwxz2456789]{5}$`,
		strings.Repeat("a", 63) + "-": `^a{58}[bcdfghjklmnpqrstvwxz2456789]{5}$`,
	} {
		var n names
		if got := n.pick(kind{service: web}, prefix, func(string) bool { return false }); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%q", got)
		}
	}
}

// show puts what there is into the cache.
func (s *server) show() {
	for _, slice := range s.there {
		s.cache(s.t, slice)
	}
}

func (s *server) only() string {
	for name := range s.there {
		return name
	}
	return ""
}

func TestAnEndpointThatLeavesDoesNotWait(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(9, 0))
	s := newShell(t, Options{Clock: clock}, service(), node("n", "a"), pod(1, "n"))
	s.settle(t)
	s.spacing.Done(web, clock.Now().Add(-time.Second), nil) // as if that had taken a second

	s.cache(t, pod(2, "n"))
	s.onPod(runner.Change[corev1.Pod]{New: pod(2, "n")}, s)
	if result := s.sync(context.Background(), web); result.Err() != nil || result.After() != 500*time.Millisecond || len(s.written) != 0 {
		t.Errorf("a pod that joins: %v, again in %v, wrote %d", result.Err(), result.After(), len(s.written))
	}
	s.cache(t, pod(1, "n", unready))
	s.onPod(runner.Change[corev1.Pod]{Old: pod(1, "n"), New: pod(1, "n", unready)}, s)
	if result := s.sync(context.Background(), web); result.Err() != nil || result.After() != 0 || len(s.written) != 1 {
		t.Errorf("a pod that leaves: %v, again in %v, wrote %d", result.Err(), result.After(), len(s.written))
	}
}
