package scenarios

import "testing"

func TestSeriesAreAddedUp(t *testing.T) {
	const text = `# HELP blocks_used Blocks.
# TYPE blocks_used gauge
blocks_used{range="10.0.0.0/8",zone="a"} 0.25
blocks_used{range="10.0.0.0/8",zone="b"} 0.5
blocks_used{range="fd00::/48",zone="a \"x\""} 1
blocks_used_total 3
`
	for wanted, want := range map[string]struct {
		sum    float64
		series int
	}{
		"blocks_used":                              {1.75, 3},
		`blocks_used{range="10.0.0.0/8"}`:          {0.75, 2},
		`blocks_used{zone="b",range="10.0.0.0/8"}`: {0.5, 1},
		`blocks_used{zone="a \"x\""}`:              {1, 1},
		`blocks_used{zone="c"}`:                    {0, 0},
		"blocks_used_total":                        {3, 1},
		"blocks":                                   {0, 0},
	} {
		if sum, series := sumOf(text, wanted); sum != want.sum || series != want.series {
			t.Errorf("%s: got %v of %d series, want %v of %d", wanted, sum, series, want.sum, want.series)
		}
	}
}
