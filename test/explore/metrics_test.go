package explore

import "testing"

func TestCountsThatDidNotGoUpAlike(t *testing.T) {
	text := func(jobs, deleted string) string {
		return `# TYPE job_controller_jobs_finished_total counter
job_controller_jobs_finished_total{result="failed",reason="x"} ` + jobs + `
# TYPE ttl_after_finished_controller_job_deletion_duration_seconds histogram
ttl_after_finished_controller_job_deletion_duration_seconds_bucket{le="+Inf"} ` + deleted + `
ttl_after_finished_controller_job_deletion_duration_seconds_sum 1.5
ttl_after_finished_controller_job_deletion_duration_seconds_count ` + deleted + `
# TYPE go_goroutines gauge
go_goroutines ` + jobs + "\n"
	}
	read := func(jobs, deleted string) map[string]float64 {
		c, err := counts(text(jobs, deleted))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := read("1", "1")
	same := metricFindings("s", grown(before, read("3", "2")), grown(read("4", "0"), read("6", "1")))
	if len(same) > 0 {
		t.Errorf("both went up alike: %v", same)
	}
	found := metricFindings("s", grown(before, read("3", "2")), grown(before, read("4", "1")))
	if len(found) != 2 || found[0].Subject != "job_controller_jobs_finished_total{reason=x,result=failed}" || !found[0].More || found[1].More {
		t.Errorf("found %v", found)
	}
}
