// Package act carries out what controllers want written.
//
// A controller returns a [Plan]: a value, made by a plain function of what was
// observed and the time. The [Actor] records it, carries it out step by step, and
// records what became of it. It is the only holder of a client that writes, and the
// one place where every write gets what every write needs: preconditions, the record
// of what was written, the answer that was lost, the refusal that is no proof,
// events, slow start, the pace of statuses, dry run, limits and a span.
//
// Where to look: plan.go has the words that a controller plans in, steps.go what can
// be written, many.go what is about all objects of a kind, actor.go the order in which
// it is done, write.go the writes, again.go those that are made once more, looks.go the
// live looks before them, and resources.go the objects whose kind is not known.
package act
