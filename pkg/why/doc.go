// Package why answers the question of an operator about one object: why is it as it
// is, and what is being done about it.
//
// An answer goes from the object down to what it owns, and up to its owners. Each
// object has a verdict, in numbers, from what the caches hold of it, and what each
// controller that works on it remembers: its last decisions, its last error, when it
// tries again and what it waits for. Nothing is read live and nothing is scanned: what
// no cache holds, and what no index finds, is said to be unknown.
//
// Verdicts of a kind are pure functions of its objects and the time. Which controllers
// work on which kind, and under which key, is for the process to say (Controllers).
package why
