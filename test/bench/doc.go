// Command bench gives the original and our controller manager the same work, in
// turn and on fresh clusters, and reports what each needed for it: time, CPU,
// memory, requests, bytes. docs/bench.md says how to read the report.
//
// A scenario is one file: its sizes, its flags, and a function that puts load on
// a world and waits until the cluster is as asked for. The report, package
// report, is pure and measures nothing.
package main
