// Package quota knows how much of a ResourceQuota an object uses, and adds it up.
//
// All of it is pure: objects and a time go in, quantities come out. Names says
// which resources are looked at for a name in spec.hard, Kind measures an object
// of one of them, and a Book keeps the sum over the objects of a namespace, at
// the cost of what changes and not of what is there.
package quota
