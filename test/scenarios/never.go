package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// sideBySide groups the steps that are carried out together: consecutive never
// lines share one wait; any other step is alone.
func sideBySide(steps []Step) [][]Step {
	var groups [][]Step
	for i, step := range steps {
		if i > 0 && step.Never > 0 && steps[i-1].Never > 0 && step.Ours == steps[i-1].Ours {
			last := len(groups) - 1
			groups[last] = append(groups[last], step)
			continue
		}
		groups = append(groups, []Step{step})
	}
	return groups
}

// vigil is one never line that is being watched.
type vigil struct {
	step  Step
	holds func() (ok bool, seen string, err error)
}

// never watches that no condition becomes true, each for its own time. It
// returns the step that failed.
func (r *run) never(ctx context.Context, steps []Step) (Step, error) {
	var vigils []vigil
	for _, step := range steps {
		filled, err := r.fill(ctx, step.Rest)
		if err != nil {
			return step, err
		}
		step.Rest = filled
		c, err := parseCondition(step)
		if err != nil {
			return step, err
		}
		vigils = append(vigils, vigil{step, func() (bool, string, error) { return c.holds(ctx, r, true) }})
	}
	return keep(ctx, vigils, r.managerDied)
}

func keep(ctx context.Context, vigils []vigil, died func() bool) (Step, error) {
	begin := time.Now()
	over := func(v vigil) bool { return time.Since(begin) >= v.step.Never }
	for len(vigils) > 0 {
		for _, v := range vigils {
			ok, seen, err := v.holds()
			if err != nil {
				return v.step, err
			}
			// An answer that comes late may tell of a time after the end.
			if ok && !over(v) {
				return v.step, fmt.Errorf("became true: %s", seen)
			}
		}
		if died() {
			return vigils[0].step, errors.New("the controller manager has ended by itself")
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return vigils[0].step, err
		}
		vigils = slices.DeleteFunc(vigils, over)
	}
	return Step{}, nil
}
