// Package clusterroleaggregation keeps the rules of aggregated ClusterRoles:
// those with an aggregation rule hold the rules of all roles that it selects.
//
// It reads ClusterRoles and applies the rules of aggregated ones. It never
// touches a role without an aggregation rule, nor anything but rules; rules that
// somebody wrote into an aggregated role are replaced.
package clusterroleaggregation
