// Package explore makes stories by chance and plays each under the reference and
// under our binary, side by side, to find differences that nobody thought of.
//
// A seed gives a Script: objects of a family with fields drawn from all fields
// that the API has for them, and lines of the stories' language (docs/scenarios.md).
// Play carries the lines out on both sides; after each one both sides come to
// rest and are compared. What differs is played again, and the reference is played
// against itself, so that chance is measured (judge.go). A difference that is none
// of chance is shrunk (shrink.go) and written as a story for test/scenarios.
//
// A family is a file: which controllers run, which objects there are, and the
// moves that a script is made of (family.go, moves.go).
package explore
