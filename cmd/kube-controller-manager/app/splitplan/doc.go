// Package splitplan plans how two controller managers share the controllers of a cluster:
// which of them may move to another process, which have to go together, and what the
// command lines and the static pods of both are then. It starts nothing and writes no
// file.
//
// table.go says of each controller what it goes with and what it forgets when it moves.
package splitplan
