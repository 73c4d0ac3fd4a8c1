// Package cronjob starts the Jobs of CronJobs at the times of their schedules.
//
// What it keeps true: for each time of a schedule at most one Job, whose name is
// made of that time; of several times that have passed only the latest, unless
// it is longer ago than the starting deadline; with the policy Forbid no Job
// beside another, with Replace only the newest. The status lists the Jobs that
// run, the time of the latest start and that of the latest success. Of the Jobs
// that have ended as many stay as the history limits say.
//
// It reads CronJobs and the Jobs they control, creates and deletes Jobs, and
// writes the status of CronJobs. A Job that it did not make is reported, counts
// in the history, and is otherwise left alone. Pods are not its business.
//
// Where to look: schedule.go has the times of a schedule, plan.go what is due,
// status.go what the status says of the Jobs, jobs.go a Job and the history, steps.go
// what is written, in which order. All these are pure.
package cronjob

import (
	// Time zones are known on machines that have no database of them.
	_ "time/tzdata"
)
