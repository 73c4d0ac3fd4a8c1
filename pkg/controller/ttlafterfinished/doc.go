// Package ttlafterfinished deletes Jobs that have ended, complete or failed,
// when as many seconds have passed as their ttlSecondsAfterFinished says. What
// they own goes before them, in the foreground.
//
// A Job is read again before it is deleted, because its time may have been
// changed, and is deleted only as it was read. It changes nothing.
package ttlafterfinished
