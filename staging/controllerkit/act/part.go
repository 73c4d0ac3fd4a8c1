package act

import (
	"context"
	"slices"
)

// part takes the stages of a part, and then its last step.
func (h *hand) part(ctx context.Context, s Part) Result {
	whole := Result{Became: Done, part: h.stages(ctx, s.Stages)}
	if s.Last != nil {
		if step := s.Last(whole.part); step != nil {
			whole.part = append(whole.part, h.take(ctx, step))
		}
	}
	if i := slices.IndexFunc(whole.part, Result.ends); i >= 0 {
		whole.Became, whole.Err = whole.part[i].Became, whole.part.Err()
	}
	return whole
}

// flat has the results of the steps of a part in place of the part's own.
func (r Results) flat() Results {
	if !slices.ContainsFunc(r, func(result Result) bool { _, is := result.Step.(Part); return is }) {
		return r
	}
	var all Results
	for _, result := range r {
		switch p, is := result.Step.(Part); {
		case !is:
			all = append(all, result)
		case result.part != nil:
			all = append(all, result.part...)
		default:
			all = append(all, notBegun(p.Stages)...)
		}
	}
	return all
}

// notBegun is what becomes of stages whose time has not come.
func notBegun(stages []Stage) Results {
	var all Results
	for _, stage := range stages {
		for _, step := range stage.Steps {
			all = append(all, Result{Step: step, Became: NotBegun})
		}
	}
	return all.flat()
}
