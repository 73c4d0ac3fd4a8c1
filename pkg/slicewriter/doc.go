// Package slicewriter lets the library that keeps EndpointSlices write with the kit's
// hand. The library takes a clientset and a recorder, and goes on by each answer; what
// it is given here makes a step of each write, so that it is recorded, held to the
// limits and waited for like any other.
//
// It decides nothing. It creates, updates and deletes EndpointSlices, and records events
// on Services.
package slicewriter
