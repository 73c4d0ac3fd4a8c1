package consistency

import (
	"errors"
	"time"
)

// Withheld is the error of a write that was not sent, because somebody asked for it to
// wait. It is no failure: nothing is counted or recorded, and the key waits.
type Withheld struct {
	// Why says who asked, for a person.
	Why string
	// Until is when the write may be tried again; zero: when somebody resumes it.
	Until time.Time
}

// Error is why the write waits.
func (w *Withheld) Error() string { return w.Why }

// WasWithheld returns what an error says of a write that was withheld; nil if it is, or
// wraps, no such error. Of several that are joined all have to be; what is returned is that
// which may be tried first.
func WasWithheld(err error) *Withheld {
	for err != nil {
		if w, is := err.(*Withheld); is {
			return w
		}
		switch wrapped := err.(type) {
		case interface{ Unwrap() []error }:
			return allWithheld(wrapped.Unwrap())
		case interface{ Errors() []error }: // an aggregate of apimachinery
			return allWithheld(wrapped.Errors())
		}
		err = errors.Unwrap(err)
	}
	return nil
}

// allWithheld returns that which may be tried first, or else the first of them.
func allWithheld(errs []error) *Withheld {
	var first *Withheld
	for _, err := range errs {
		w := WasWithheld(err)
		if w == nil {
			return nil
		}
		if first == nil || first.Until.IsZero() && !w.Until.IsZero() || !w.Until.IsZero() && w.Until.Before(first.Until) {
			first = w
		}
	}
	return first
}
