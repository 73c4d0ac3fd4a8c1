// Package pause keeps controllers from writing while a ConfigMap says so.
//
// The ConfigMap names controllers, namespaces, and controllers in namespaces. [Parse]
// makes [Rules] of it, a pure function; a [Watcher] follows it, and hands the rules to
// what holds the writes back (act.Limits, which runners heed, and the last gate in
// package transport). What is not understood changes nothing: the rules before it stay.
//
// Nothing is written by what nobody has read: until the ConfigMap has been read for the
// first time everything is paused.
package pause
