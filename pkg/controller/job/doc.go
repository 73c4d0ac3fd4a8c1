// Package job runs Jobs: it keeps as many pods running as a Job asks for until
// enough of them have succeeded or it is given up, and counts how they ended.
//
// What it keeps true: every pod that a Job made is counted once, whatever goes
// down in between. A pod carries the finalizer batch.kubernetes.io/job-tracking
// until it has been counted: first its UID is written to
// status.uncountedTerminatedPods (for an Indexed Job that succeeded, its index
// to status.completedIndexes), then the finalizer is taken off, then the UID
// moves into the number. The condition that says how a Job will end, FailureTarget
// or SuccessCriteriaMet, is written before the finalizers go; Failed or Complete
// only when no pod of the Job runs any more. A pod that is taken from a Job which
// goes on loses its finalizer first and is not counted; one that was left so and
// stays gets it again.
//
// With the gate WorkloadWithJob, a Job whose indexes all run at once has its pods
// scheduled together: a Workload and a PodGroup are there before its first pod, which
// names the group.
//
// What it writes: pods (create, delete; owner reference and finalizer by patch), the
// status of Jobs, events on Jobs, and Workloads and PodGroups (create). It never writes
// a Job's spec, touches no Job that spec.managedBy gives to somebody else, and never
// changes a pod that another owner controls, but for the finalizer of a pod whose Job
// has ended, and of one that is deleted while its Job is not there.
//
// Where to look: observe.go reads the caches. plan.go adopts, gang.go sees to what pods
// are scheduled by, and round.go is one turn of a Job in its phases. view.go says what
// there is, failurepolicy.go, successpolicy.go and conclusion.go when a Job ends, decide.go
// and victims.go which pods to make and take away, backoff.go, perindex.go and
// rejected.go when failed ones are replaced, tally.go how the ended ones are counted,
// orphans.go what becomes of pods that no Job counts, indexes.go how sets of indexes are
// written. All but observe.go, controller.go and watch.go is pure.
package job
