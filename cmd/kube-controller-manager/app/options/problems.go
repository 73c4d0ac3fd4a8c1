package options

import (
	"fmt"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// problems collects everything that is wrong with a command line.
type problems struct {
	errs []error
}

// add takes errors as they are; nil ones are not problems.
func (p *problems) add(errs ...error) {
	for _, err := range errs {
		if err != nil {
			p.errs = append(p.errs, err)
		}
	}
}

// addf adds a problem that says all by itself.
func (p *problems) addf(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(format, args...))
}

// with adds a problem of a flag and the value it was given.
func (p *problems) with(flag string, value any, err error) {
	if err != nil {
		p.addf("--%s=%v: %w", flag, value, err)
	}
}

// workers refuses a controller that nobody would work for.
func (p *problems) workers(flag string, count int32) {
	if count <= 0 {
		p.addf("%s must be greater than 0, but got %d", flag, count)
	}
}

// within refuses a count outside the limits.
func (p *problems) within(flag string, value, least, most int32) {
	switch {
	case value < least:
		p.addf("%s must not be less than %d, but got %d", flag, least, value)
	case value > most:
		p.addf("%s must not be more than %d, but got %d", flag, most, value)
	}
}

// positive refuses a period that cannot pass.
func (p *problems) positive(flag string, d time.Duration) {
	if d <= 0 {
		p.addf("%s must be greater than 0s, but got %s", flag, d)
	}
}

// notNegative refuses time that runs backwards; zero means something.
func (p *problems) notNegative(flag string, d time.Duration) {
	if d < 0 {
		p.addf("%s must not be negative, but got %s", flag, d)
	}
}

// notLess refuses a number below the least; it is false for NaN, which is
// refused too.
func (p *problems) notLess(flag string, value, least float64) {
	if !(value >= least) {
		p.addf("%s must not be less than %g, but got %g", flag, least, value)
	}
}

// count refuses a negative number.
func (p *problems) count(flag string, count int32) {
	if count < 0 {
		p.addf("%s must not be negative, but got %d", flag, count)
	}
}

// message joins all problems; nil when there are none.
func (p *problems) message() error {
	return utilerrors.NewAggregate(p.errs)
}
