package data

import "testing"

func TestData(*testing.T) {}
