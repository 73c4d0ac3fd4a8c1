// Package resourcepoolstatusrequest is the resourcepoolstatusrequest-controller: it answers
// each ResourcePoolStatusRequest once, with how many devices the pools of a driver have and
// how many of them are allocated.
//
// What it keeps true:
//
//   - A request without a status gets one as soon as all slices of the pools in the answer
//     are published. Until then it waits for slices of its driver.
//   - A request with a status is never written again.
//   - An answered request is deleted an hour after its answer, and one that nobody could
//     answer a day after it was made.
//
// It reads ResourcePoolStatusRequests, ResourceSlices and ResourceClaims; it writes the
// status of requests and deletes them, and nothing else. It sends no events.
package resourcepoolstatusrequest
