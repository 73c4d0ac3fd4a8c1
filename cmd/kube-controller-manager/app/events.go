package app

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// flushTimeout bounds how long a stopping process waits for events to be written.
const flushTimeout = 400 * time.Millisecond

// eventStream is a broadcaster that can be flushed. The library's Shutdown
// drops what is still queued; a mark that is sent through the queue shows when
// everything before it has been written.
type eventStream struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
	// mark is the UID of all marks, by which they are told from events.
	mark types.UID
	// marks are those on their way, by name; each is closed when it has passed.
	marks sync.Map
}

// newEvents returns a stream whose events come from source and are written with client;
// with none they are logged only.
func newEvents(ctx context.Context, client typedcorev1.EventsGetter, source string) *eventStream {
	broadcaster := record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx)))
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: source})
	return startEvents(ctx, broadcaster, recorder, client)
}

// startEvents makes a stream of a broadcaster that exists, and one of its recorders.
func startEvents(ctx context.Context, b record.EventBroadcaster, r record.EventRecorder, client typedcorev1.EventsGetter) *eventStream {
	s := &eventStream{broadcaster: b, recorder: r, mark: uuid.NewUUID()}
	logger := klog.FromContext(ctx)
	b.StartEventWatcher(func(e *corev1.Event) {
		if e.InvolvedObject.UID != s.mark {
			logger.V(3).Info("Event occurred", "object", klog.KRef(e.InvolvedObject.Namespace, e.InvolvedObject.Name),
				"kind", e.InvolvedObject.Kind, "type", e.Type, "reason", e.Reason, "message", e.Message)
		}
	})
	sink := record.EventSink(unwritten{})
	if client != nil {
		sink = &typedcorev1.EventSinkImpl{Interface: client.Events("")}
	}
	b.StartRecordingToSink(&markedSink{EventSink: sink, stream: s})
	return s
}

// unwritten takes events and drops them.
type unwritten struct{}

func (unwritten) Create(e *corev1.Event) (*corev1.Event, error) { return e, nil }

func (unwritten) Update(e *corev1.Event) (*corev1.Event, error) { return e, nil }

func (unwritten) Patch(e *corev1.Event, _ []byte) (*corev1.Event, error) { return e, nil }

// flush returns when all events recorded so far have been written or given up,
// or the timeout is over.
func (s *eventStream) flush(timeout time.Duration) {
	name, passed := string(uuid.NewUUID()), make(chan struct{})
	s.marks.Store(name, passed)
	defer s.marks.Delete(name)
	s.recorder.Event(&corev1.ObjectReference{Kind: "Mark", Namespace: "default", Name: name, UID: s.mark}, corev1.EventTypeNormal, "Mark", "")
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-passed:
	case <-timer.C:
	}
}

// shutdown ends the stream and drops what is still queued.
func (s *eventStream) shutdown() { s.broadcaster.Shutdown() }

// markedSink writes all events but the mark, which it reports.
type markedSink struct {
	record.EventSink
	stream *eventStream
}

// Create writes an event.
func (s *markedSink) Create(event *corev1.Event) (*corev1.Event, error) {
	if event.InvolvedObject.UID == s.stream.mark {
		if passed, on := s.stream.marks.LoadAndDelete(event.InvolvedObject.Name); on {
			close(passed.(chan struct{}))
		}
		return event, nil
	}
	return s.EventSink.Create(event)
}

// flushAll flushes streams side by side.
func flushAll(streams []*eventStream, timeout time.Duration) {
	var all sync.WaitGroup
	for _, s := range streams {
		all.Go(func() { s.flush(timeout) })
	}
	all.Wait()
}
