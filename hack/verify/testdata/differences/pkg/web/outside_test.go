package web_test

import "testing"

func TestOutside(*testing.T) {}
