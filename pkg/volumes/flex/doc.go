// Package flex runs FlexVolume drivers: programs in a directory of this host, that
// attach volumes to nodes and detach them.
//
// A driver of vendor V named D is the program V~D/D in the directory. It is called with
// a command and its arguments, and answers with a line of JSON. The directory is
// watched: drivers may come and go while the process runs.
package flex
