package explore

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// listener takes the failures of a side.
type listener struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

// Errorf keeps the failure.
func (l *listener) Errorf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// Error keeps the failure.
func (l *listener) Error(args ...any) { l.Errorf("%s", fmt.Sprint(args...)) }
