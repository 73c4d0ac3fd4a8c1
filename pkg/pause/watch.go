package pause

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// The reasons of the events on the ConfigMap.
const (
	// Paused: what it names is paused from now on, and all else is not.
	Paused = "Paused"
	// Resumed: nothing is paused any more.
	Resumed = "Resumed"
	// NotUnderstood: it has a mistake, and what was paused before stays so.
	NotUnderstood = "PauseNotUnderstood"
)

// said is how often the log says that the ConfigMap cannot be read.
const said = 10 * time.Second

// longestMessage is what the API server takes as the message of an event.
const longestMessage = 1024

// Options say what is watched, and where it is reported.
type Options struct {
	// Source lists and watches the ConfigMap alone. A list has to be of the latest state:
	// that of a cache of the API server may be older than what a leader before has obeyed.
	Source cache.ListerWatcher
	// ConfigMap is what is watched; there need not be one of that name.
	ConfigMap types.NamespacedName
	Names     Names
	Events    runner.EventRecorder
	// Pause is called with the rules of each change, one call after the other.
	Pause func(Rules)
}

// Watcher follows the ConfigMap.
type Watcher struct {
	o Options

	mu       sync.Mutex
	rules    Rules
	read     bool // the first state has been taken in
	informer cache.SharedIndexInformer
	synced   cache.InformerSynced
}

// New returns a watcher, which has paused everything until the ConfigMap has been read.
func New(o Options) (*Watcher, error) {
	w := &Watcher{o: o, rules: everything("this process", fmt.Sprintf("ConfigMap %s has not been read yet", o.ConfigMap))}
	w.informer = cache.NewSharedIndexInformer(o.Source, &corev1.ConfigMap{}, 0, cache.Indexers{})
	registration, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.saw(o) },
		UpdateFunc: func(_, o any) { w.saw(o) },
		DeleteFunc: func(o any) { w.gone(o) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch ConfigMap %s: %w", o.ConfigMap, err)
	}
	w.synced = registration.HasSynced
	o.Pause(w.rules)
	return w, nil
}

// Run follows the ConfigMap until ctx ends.
func (w *Watcher) Run(ctx context.Context) { w.informer.RunWithContext(ctx) }

// Wait returns when the ConfigMap has been read, or when it is known that there is none;
// or with an error when ctx ends. It says in the log that it waits.
func (w *Watcher) Wait(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	ticker := time.NewTicker(said)
	defer ticker.Stop()
	read := make(chan struct{})
	go func() {
		defer close(read)
		cache.WaitForCacheSync(ctx.Done(), w.synced)
	}()
	for {
		select {
		case <-read:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			w.readNone()
			return nil
		case <-ticker.C:
			logger.Info("Waiting for the ConfigMap of --pause-configmap: no controller is started before it has been read", "configMap", w.o.ConfigMap)
		}
	}
}

// saw takes in a state of the ConfigMap, and not of another one.
func (w *Watcher) saw(o any) {
	if seen, ok := o.(*corev1.ConfigMap); ok && seen.Name == w.o.ConfigMap.Name && seen.Namespace == w.o.ConfigMap.Namespace {
		w.take(seen, seen)
	}
}

// gone takes in that the ConfigMap was deleted.
func (w *Watcher) gone(o any) {
	if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	if last, ok := o.(*corev1.ConfigMap); ok {
		w.take(nil, last)
	}
}

// readNone takes in that there is none, unless one has been seen meanwhile.
func (w *Watcher) readNone() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.read {
		w.takeLocked(nil, nil)
	}
}

// take makes the rules of a state, nil for none; events are about the last one known.
func (w *Watcher) take(now, about *corev1.ConfigMap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.takeLocked(now, about)
}

func (w *Watcher) takeLocked(now, about *corev1.ConfigMap) {
	first := !w.read
	w.read = true
	rules, err := Parse(now, w.o.Names)
	if err != nil {
		w.refuse(about, err, first)
		return
	}
	notUnderstood.Set(0)
	if !first && rules.same(w.rules) {
		return
	}
	before := w.rules
	w.pause(rules)
	switch {
	case !rules.empty():
		w.tell(about, corev1.EventTypeNormal, Paused, "Paused: "+rules.String())
	case !first:
		w.tell(about, corev1.EventTypeNormal, Resumed, "Resumed: "+before.String())
	}
}

// refuse keeps what is paused, because the ConfigMap is not understood. Without anything
// before it everything stays paused: nobody knows what was meant.
func (w *Watcher) refuse(about *corev1.ConfigMap, err error, first bool) {
	notUnderstood.Set(1)
	if first {
		w.pause(everything("ConfigMap "+w.o.ConfigMap.String(), "it is not understood, and what was paused before is not known to this process"))
	}
	w.tell(about, corev1.EventTypeWarning, NotUnderstood, fmt.Sprintf("Not understood, and nothing is changed: %s; still paused: %s",
		short(err.Error()), w.rules))
}

func (w *Watcher) pause(rules Rules) {
	w.rules = rules
	rules.measure()
	w.o.Pause(rules)
}

// tell says what has happened in the log and in an event.
func (w *Watcher) tell(about *corev1.ConfigMap, kind, reason, message string) {
	klog.Background().Info("Pause ConfigMap read", "configMap", w.o.ConfigMap, "reason", reason, "message", message)
	if about == nil {
		return
	}
	if runes := []rune(message); len(runes) > longestMessage {
		message = string(runes[:longestMessage-4]) + " ..."
	}
	w.o.Events.Event(about, kind, reason, message)
}
