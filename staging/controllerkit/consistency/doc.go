// Package consistency gives controllers read-your-writes on informer caches.
//
// A controller reads from caches that lag behind the API server. Acting twice
// on the same stale picture is how duplicate pods come about. Instead of every
// controller counting the events it expects, the writer records here what each
// key wrote, and the runner asks, before it calls the controller for that key
// again, whether the caches have seen all of it.
//
// A create, update or patch has been seen when the cache's store has reached
// the resource version that the write returned; resource versions of one
// resource are comparable numbers at this API level. A deletion has been seen
// when the object of that UID is gone from the store or shows a deletion
// timestamp.
//
// An answer that refuses a deletion does not show that the object is gone, and an
// answer that was lost shows nothing at all. Both are settled by a live read
// ([Tracker.DeleteAnswered], [Tracker.CreateLost], [Tracker.Look]).
package consistency
