// Package revisions keeps the history of a workload's pod template in
// ControllerRevisions, for DaemonSets and StatefulSets.
//
// The bytes of a revision's data, its name and its hash are in clusters that
// have run for years, and pods carry them in labels: data.go and names.go say
// what they are and never change. history.go decides over the revisions of one
// owner: which holds a template, which number is next, which are no longer
// needed. defaults.go is what the API server adds to a template. plan.go has the
// steps that adopt, create, renumber and delete. All are pure.
//
// A DaemonSet names a revision by the hash of its pod template
// (pods.TemplateHash) and keeps it in the label controller-revision-hash; a
// StatefulSet names it by the hash of the revision's data (Hash) and keeps it in
// the label controller.kubernetes.io/hash.
package revisions
