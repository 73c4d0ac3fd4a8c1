// Package election lets one process of several lead. The library elects; this
// package adds what a quick and safe change of leader needs: a standby watches the
// lease and acts when it is let go, the lease is released only after all work has
// ended, and a fence stops every write of a process that may have lost it.
package election
