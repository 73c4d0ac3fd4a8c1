// Package transport is what lies between the clients of the process and the API server.
//
// It keeps the process going while the API server is down or refuses requests. Lists
// and watches wait until it answers (Reads). Watches that end at once are opened again
// after growing gaps. What the start of the process asks for is retried when the error
// can pass (Try).
//
// When the process stops, it lets the writes under way finish, and sends none after
// them; nor does it send one when the lease may be lost (Finishing).
//
// It refuses what is withheld (Withholding), and in a shadow all that is not a read
// (ReadOnly). The rates of its clients can be changed while they run (Rates).
//
// It makes the watches of the caches cheap (Batched): busy connections are read at
// intervals, those that bring heartbeats at longer ones.
//
// It asks for no more of the answer to a write of a pod than is used (PodMetadata).
package transport
