//go:build !race

package testworld

const raceEnabled = false
