// Package validatingadmissionpolicystatus checks the expressions of
// ValidatingAdmissionPolicies against the types that they are about, and reports
// what cannot be right in the status of the policy.
//
// It reads ValidatingAdmissionPolicies, what the API server serves, and the
// OpenAPI documents of that. It applies status.observedGeneration and
// status.typeChecking, once for each generation of a policy. A type that is not
// served, or whose schema is not published, is left out of the check, as
// wildcards are. What it finds never changes how a policy works.
package validatingadmissionpolicystatus
