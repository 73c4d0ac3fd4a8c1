package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// refusing answers every watch the same way, and lists with nothing.
type refusing struct {
	code     int
	inStream bool
	watches  atomic.Int32
}

func (s *refusing) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if !req.URL.Query().Has("watch") {
		_ = json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}})
		return
	}
	s.watches.Add(1)
	reason := map[int]metav1.StatusReason{http.StatusGone: metav1.StatusReasonExpired, http.StatusInternalServerError: metav1.StatusReasonInternalError}[s.code]
	status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(s.code), Message: "no"}
	if !s.inStream {
		w.WriteHeader(s.code)
		_ = json.NewEncoder(w).Encode(status)
		return
	}
	body, _ := json.Marshal(status)
	_, _ = fmt.Fprintf(w, `{"type":"ERROR","object":%s}`+"\n", body)
}

// TestWatchesThatAreRefusedBackOff counts what a cache sends in three seconds to
// an API server that refuses every watch.
func TestWatchesThatAreRefusedBackOff(t *testing.T) {
	const most = 8
	for name, server := range map[string]*refusing{
		"410":               {code: http.StatusGone},
		"410 in the stream": {code: http.StatusGone, inStream: true},
		"500":               {code: http.StatusInternalServerError},
		"500 in the stream": {code: http.StatusInternalServerError, inStream: true},
		"503":               {code: http.StatusServiceUnavailable},
		"504":               {code: http.StatusGatewayTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := httptest.NewServer(server)
			defer api.Close()
			config := Reads(&rest.Config{Host: api.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, klog.Background())
			ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
			defer stop()
			factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
			factory.Core().V1().Pods().Informer()
			factory.StartWithContext(ctx)
			<-ctx.Done()
			factory.Shutdown()
			if got := server.watches.Load(); got > most || got < 2 {
				t.Errorf("%d watches in three seconds, want 2 to %d", got, most)
			}
		})
	}
}

// cannedAnswers is a transport of watches that end as it says.
type cannedAnswers struct {
	mu    sync.Mutex
	code  int
	lives time.Duration
	err   error
	at    []time.Time
}

type endless struct{}

func (endless) Read([]byte) (int, error) { return 0, errors.New("closed") }
func (endless) Close() error             { return nil }

func (a *cannedAnswers) RoundTrip(*http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, time.Now())
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Body: endless{}}, nil
}

// gaps opens watches one after the other and returns the longest and the last pause.
func (a *cannedAnswers) gaps(t *testing.T, watches int, path string) (longest, last time.Duration) {
	t.Helper()
	transport := spacedOut(a)
	for range watches {
		before := time.Now()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+path, nil)
		response, err := transport.RoundTrip(req)
		last = a.at[len(a.at)-1].Sub(before)
		longest = max(longest, last)
		if err == nil {
			_ = sleep(t.Context(), a.lives)
			response.Body.Close()
		}
	}
	return longest, last
}

func TestGapsBetweenWatches(t *testing.T) {
	const pods = "/api/v1/pods?watch=true"
	for name, tc := range map[string]*struct {
		answers     cannedAnswers
		path        string
		atLeast, to time.Duration
	}{
		"grow while the version is too old":  {cannedAnswers{code: 410}, pods, widestGap / 2, widestGap},
		"grow while the server fails":        {cannedAnswers{code: 503}, pods, widestGap / 2, widestGap},
		"grow while the server has an error": {cannedAnswers{code: 500}, pods, widestGap / 2, widestGap},
		"grow while the stream ends at once": {cannedAnswers{code: 200}, pods, widestGap / 2, widestGap},
		"are none when watches live":         {cannedAnswers{code: 200, lives: 2 * shortLived}, pods, 0, 0},
		"are none when watches just live":    {cannedAnswers{code: 200, lives: shortLived}, pods, 0, 0},
		"are the client's own after 429":     {cannedAnswers{code: 429}, pods, 0, 0},
		"are the client's own unanswered":    {cannedAnswers{err: errors.New("refused")}, pods, 0, 0},
		"are none for what may not be read":  {cannedAnswers{code: 403}, pods, 0, 0},
		"are none between lists":             {cannedAnswers{code: 503}, "/api/v1/pods", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				longest, last := tc.answers.gaps(t, 12, tc.path)
				if last < tc.atLeast || longest > tc.to {
					t.Errorf("the last gap is %s and the longest %s, want %s to %s", last, longest, tc.atLeast, tc.to)
				}
			})
		})
	}
}

func TestAWatchThatLivesEndsTheGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &cannedAnswers{code: 410}
		transport := spacedOut(a)
		open := func() time.Duration {
			before := time.Now()
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/api/v1/pods?watch=1", nil)
			response, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			waited := a.at[len(a.at)-1].Sub(before)
			_ = sleep(t.Context(), a.lives)
			response.Body.Close()
			return waited
		}
		open()
		a.code, a.lives = 200, time.Minute
		if open() == 0 {
			t.Error("a watch after a refused one does not wait")
		}
		if got := open(); got != 0 {
			t.Errorf("a watch after one that lived waits %s", got)
		}
	})
}

func TestAWatchThatWaitsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := spacedOut(&cannedAnswers{code: 410})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		open := func() (*http.Response, error) {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://server/api/v1/pods?watch=1", nil)
			return transport.RoundTrip(req)
		}
		response, err := open()
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		stop()
		if _, err := open(); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
