package web

import "testing"

type rows struct{}

func (rows) TestMethod(*testing.T) {}

func TestRows(t *testing.T) {
	for name := range map[string]rows{"a row with a name": {}} {
		t.Run(name, func(*testing.T) {})
	}
}
