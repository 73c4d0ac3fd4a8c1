package main

import (
	"reflect"
	"testing"
)

func TestBenchmarksOfBothSizesArePaired(t *testing.T) {
	got := parseBench(`goos: linux
pkg: example.com/pkg/controller/deployment
BenchmarkSync/rolling/pods=1000/sets=100-2         	   36310	     34162 ns/op
BenchmarkSync/rolling/pods=10000/sets=100-2        	   34999	   1234567 ns/op	  512 B/op
BenchmarkSync/rolling/pods=1000/sets=1000-2        	   34999	     34163 ns/op
PASS
pkg: example.com/pkg/controller/podautoscaler
BenchmarkLook/1000         	   36310	     950.4 ns/op
BenchmarkLook/10000        	   36310	     1049 ns/op
BenchmarkOther             	   36310	     1049 ns/op
`)
	want := map[string][]cost{
		"deployment":    {{"34.2µs", "1.23ms", "Sync, pods"}},
		"podautoscaler": {{"950ns", "1.05µs", "Look"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRowsHaveFiveFields(t *testing.T) {
	rows := parseRows("# a comment\na-controller\ta\tas\tshared other\tTestOne TestTwo\nb-controller\tb\tb\t\t\n")
	want := []row{{"a-controller", "a", "as", []string{"shared", "other"}, []string{"TestOne", "TestTwo"}}, {"b-controller", "b", "b", []string{}, []string{}}}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("got %v, want %v", rows, want)
	}
}

func TestEveryStoryTestAndPackageHasARow(t *testing.T) {
	t.Chdir("../..")
	if _, _, _, err := found(parseRows(controllers)); err != nil {
		t.Error(err)
	}
}
