package cronjob

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var (
	_   runner.Loop = (*Controller)(nil)
	web             = types.NamespacedName{Namespace: "ns", Name: "web"}
)

// rig is a controller with caches that are filled by hand, and a fake server.
type rig struct {
	*Controller
	*fixture.Rig
}

// rigWith fills both the caches and the server.
func rigWith(t testing.TB, objects ...runtime.Object) *rig {
	t.Helper()
	return rigApart(t, objects, objects)
}

func rigApart(t testing.TB, cached, live []runtime.Object) *rig {
	t.Helper()
	r := fixture.New(fake.NewClientset(live...), noon)
	c, err := New(r.In.Batch().V1().CronJobs(), r.In.Batch().V1().Jobs(), r.Hand(), 1)
	if err != nil {
		t.Fatal(err)
	}
	c.LookLive(fixture.Live(r.Client))
	r.Cache(t, cached...)
	return &rig{c, r}
}

func (r *rig) status(t *testing.T) batchv1.CronJobStatus {
	t.Helper()
	c, err := r.Client.BatchV1().CronJobs("ns").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Status
}

var noonJob = jobName(hourly(), hour(12))

// observations is how often the metric has seen a start.
func observations(t *testing.T) uint64 {
	t.Helper()
	seen, err := testutil.GetHistogramVecFromGatherer(legacyregistry.DefaultGatherer, "cronjob_controller_job_creation_skew_duration_seconds", nil)
	if err != nil {
		t.Fatal(err)
	}
	return seen.GetAggregatedSampleCount()
}

func TestAStart(t *testing.T) {
	r := rigWith(t, hourly(last(hour(11)))) // it registers the metric
	before := observations(t)
	result := r.Reconcile(t.Context(), web)
	if result.Err() != nil || result.After() != 59*time.Minute+50*time.Second+afterTime {
		t.Errorf("%v, again after %s", result.Err(), result.After())
	}
	if got := r.Requests(); got != "create jobs, update cronjobs/status" {
		t.Errorf("did %s", got)
	}
	if got := r.Told(); got != "Normal SuccessfulCreate Created job "+noonJob {
		t.Errorf("told %s", got)
	}
	status := r.status(t)
	if activeNames(status) != noonJob || !status.LastScheduleTime.Time.Equal(hour(12)) {
		t.Errorf("status %+v", status)
	}
	if ref := status.Active[0]; ref.Kind != "Job" || ref.APIVersion != "batch/v1" || ref.Namespace != "ns" {
		t.Errorf("active %+v", ref)
	}
	if after := observations(t); after != before+1 {
		t.Errorf("%d observations after %d", after, before)
	}
}

func TestNothingIsWrittenWhenNothingChanges(t *testing.T) {
	r := rigWith(t, hourly(last(hour(12)), lists("a"), succeededAt(noon.Add(-time.Minute))), job("a"), job("b", complete(time.Minute)))
	if result := r.Reconcile(t.Context(), web); result.Err() != nil || r.Requests() != "" || r.Told() != "" {
		t.Errorf("%v, did %s, told %s", result.Err(), r.Requests(), r.Told())
	}
	if result := r.Reconcile(t.Context(), types.NamespacedName{Namespace: "ns", Name: "none"}); result.Err() != nil || r.Requests() != "" {
		t.Errorf("a CronJob that is gone: %v, did %s", result.Err(), r.Requests())
	}
}

func TestSteps(t *testing.T) {
	broken := errors.New("connection refused")
	jobs := jobResource
	ending := apierrors.NewForbidden(jobs, noonJob, broken)
	ending.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
	type failure struct {
		verb, resource string
		err            error
	}
	objects := func(all ...runtime.Object) []runtime.Object { return all }
	due := hourly(last(hour(11)))
	theirs := job(noonJob, func(j *batchv1.Job) { j.OwnerReferences = nil })
	ours := job(noonJob)
	for name, tc := range map[string]struct {
		cached, live []runtime.Object
		fails        []failure
		did, told    string
		failed       bool
		after        time.Duration
		active       string
	}{
		"the job was made before the status could be written": {cached: objects(due), live: objects(due, ours),
			did: "create jobs, get jobs, update cronjobs/status", active: noonJob, after: time.Hour},
		"the name is somebody else's": {cached: objects(due), live: objects(due, theirs), did: "create jobs, get jobs", after: time.Hour},
		"the name is taken, by whom cannot be read": {cached: objects(due), live: objects(due, ours), fails: []failure{{"get", "jobs", broken}},
			did: "create jobs, get jobs", failed: true},
		"the server refuses it": {cached: objects(due), live: objects(due), fails: []failure{{"create", "jobs", apierrors.NewForbidden(jobs, noonJob, broken)}},
			did: "create jobs", failed: true, told: `Warning FailedCreate Error creating job: jobs.batch "` + noonJob + `" is forbidden: connection refused`},
		"its namespace is being deleted": {cached: objects(due), live: objects(due), fails: []failure{{"create", "jobs", ending}}, did: "create jobs", failed: true},
		"the status cannot be written": {cached: objects(due), live: objects(due), fails: []failure{{"update", "cronjobs", broken}},
			did: "create jobs, update cronjobs/status", failed: true, told: "Normal SuccessfulCreate Created job " + noonJob},
		"it is gone when the status is written": {cached: objects(due), live: objects(due), fails: []failure{{"update", "cronjobs", apierrors.NewNotFound(batchv1.Resource("cronjobs"), "web")}},
			did: "create jobs, update cronjobs/status", told: "Normal SuccessfulCreate Created job " + noonJob, failed: true},

		"one is replaced": {cached: objects(hourly(last(hour(11)), lists("a"), replace), job("a")), live: objects(hourly(last(hour(11)), lists("a"), replace), job("a")),
			did: "get jobs, delete jobs, create jobs, update cronjobs/status", told: "Normal SuccessfulDelete Deleted job a; Normal SuccessfulCreate Created job " + noonJob, active: noonJob, after: time.Hour},
		"one to be replaced cannot be read": {cached: objects(hourly(last(hour(11)), lists("a"), replace), job("a")), live: objects(hourly(last(hour(11)), lists("a"), replace), job("a")),
			fails: []failure{{"get", "jobs", broken}}, did: "get jobs", told: "Warning FailedGet Get job: connection refused", failed: true, active: "a"},
		"one to be replaced is not found": {cached: objects(hourly(last(hour(11)), lists("a"), replace), job("a")), live: objects(hourly(last(hour(11)), lists("a"), replace)),
			did: "get jobs", told: `Warning FailedGet Get job: jobs.batch "a" not found`, failed: true, active: "a"},
		"the name of one to be replaced is another's now": {cached: objects(hourly(last(hour(11)), lists("a"), replace), job("a")),
			live: objects(hourly(last(hour(11)), lists("a"), replace), job("a", func(j *batchv1.Job) { j.UID = "other" })),
			did:  "get jobs, create jobs, update cronjobs/status", told: "Normal SuccessfulCreate Created job " + noonJob, active: noonJob, after: time.Hour},
		"one cannot be replaced": {cached: objects(hourly(last(hour(11)), lists("a"), replace), job("a")), live: objects(hourly(last(hour(11)), lists("a"), replace), job("a")),
			fails: []failure{{"delete", "jobs", broken}}, did: "get jobs, delete jobs", told: "Warning FailedDelete Deleted job: connection refused", failed: true, active: "a"},
		"one is replaced and the next refused": {cached: objects(hourly(last(hour(11)), lists("a"), replace), job("a")), live: objects(hourly(last(hour(11)), lists("a"), replace), job("a")),
			fails: []failure{{"create", "jobs", broken}}, did: "get jobs, delete jobs, create jobs, update cronjobs/status", failed: true,
			told: "Normal SuccessfulDelete Deleted job a; Warning FailedCreate Error creating job: connection refused"},

		"the active job has succeeded": {cached: objects(hourly(last(hour(12)), lists("a")), job("a", complete(time.Minute))), live: objects(hourly(last(hour(12)), lists("a")), job("a", complete(time.Minute))),
			did: "update cronjobs/status", told: "Normal SawCompletedJob Saw completed job: a, condition: Complete", after: time.Hour},
		"the history is shortened": {cached: objects(hourly(last(hour(12))), job("a", failed), job("b", failed)), live: objects(hourly(last(hour(12))), job("a", failed), job("b", failed)),
			did: "delete jobs", told: "Normal SuccessfulDelete Deleted job a", after: time.Hour},
		"what is on its way is not deleted again": {cached: objects(hourly(last(hour(12))), job("a", failed, leaving), job("b", failed)), live: objects(hourly(last(hour(12)))), after: time.Hour},
		"what is gone needs no word":              {cached: objects(hourly(last(hour(12))), job("a", failed), job("b", failed)), live: objects(hourly(last(hour(12)))), did: "delete jobs", after: time.Hour},
		"the history cannot be shortened, the start goes on": {cached: objects(due, job("a", failed), job("b", failed)), live: objects(due), fails: []failure{{"delete", "jobs", broken}},
			did: "delete jobs, create jobs, update cronjobs/status", active: noonJob, after: historyRetry,
			told: "Warning FailedDelete Deleted job: connection refused; Normal SuccessfulCreate Created job " + noonJob},

		"a stranger runs": {cached: objects(hourly(last(hour(12))), job("a")), live: objects(hourly(last(hour(12)))), did: "get cronjobs",
			told: "Warning UnexpectedJob Saw a job that the controller did not create or forgot: a", after: time.Hour},
		"only the cached status does not list it": {cached: objects(due, job(noonJob)), live: objects(hourly(last(hour(12)), lists(noonJob))), did: "get cronjobs", active: noonJob, after: time.Hour},
		"the live status cannot be read":          {cached: objects(due, job("a")), live: objects(due), fails: []failure{{"get", "cronjobs", broken}}, did: "get cronjobs", failed: true},
		"another CronJob has its name now": {cached: objects(hourly(last(hour(12))), job("a")), live: objects(hourly(func(c *batchv1.CronJob) { c.UID = "other" })), did: "get cronjobs",
			told: "Warning UnexpectedJob Saw a job that the controller did not create or forgot: a", after: time.Hour},
		"an active job was taken away": {cached: objects(hourly(last(hour(12)), lists("a"))), live: objects(hourly(last(hour(12)), lists("a")), job("a", ownerless)), did: "get jobs", active: "a", after: time.Hour},
		"one was taken away and ended": {cached: objects(hourly(last(hour(12)), lists("a"))), live: objects(hourly(last(hour(12)), lists("a")), job("a", ownerless, complete(time.Minute))), did: "get jobs, update cronjobs/status",
			after: time.Hour, told: "Normal MissingJob Active job went missing: a"},
		"one has ended and is not cached": {cached: objects(hourly(last(hour(12)), lists("a"))), live: objects(hourly(last(hour(12)), lists("a")), job("a", complete(time.Minute))), did: "get jobs", active: "a", after: time.Hour},
		"an active job went missing": {cached: objects(hourly(last(hour(12)), lists("a"))), live: objects(hourly(last(hour(12)), lists("a"))), did: "get jobs, update cronjobs/status",
			told: "Normal MissingJob Active job went missing: a", after: time.Hour},
		"one without a name, which somebody has written": {cached: objects(hourly(last(hour(12)), lists(""))), live: objects(hourly(last(hour(12)), lists(""))), did: "update cronjobs/status",
			told: "Normal MissingJob Active job went missing: ", after: time.Hour},
		"one whose name is none": {cached: objects(hourly(last(hour(12)), lists("a/b"))), live: objects(hourly(last(hour(12)), lists("a/b"))), did: "update cronjobs/status",
			told: "Normal MissingJob Active job went missing: a/b", after: time.Hour},
		"its name is another's now": {cached: objects(hourly(last(hour(12)), lists("a"))), live: objects(hourly(last(hour(12)), lists("a")), job("a", func(j *batchv1.Job) { j.UID = "other" })),
			did: "get jobs, update cronjobs/status", told: "Normal MissingJob Active job went missing: a", after: time.Hour},
		"only the cache misses it": {cached: objects(hourly(last(hour(12)), lists("a"))), live: objects(hourly(last(hour(12)), lists("a")), job("a")), did: "get jobs", active: "a", after: time.Hour},
		"whether it went missing cannot be found out": {cached: objects(hourly(last(hour(12)), lists("a"))), live: objects(hourly(last(hour(12)), lists("a"))),
			fails: []failure{{"get", "jobs", broken}}, did: "get jobs", failed: true, active: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigApart(t, tc.cached, tc.live)
			for _, f := range tc.fails {
				r.Fail(f.verb, f.resource, f.err)
			}
			result := r.Reconcile(t.Context(), web)
			if (result.Err() != nil) != tc.failed {
				t.Errorf("error %v", result.Err())
			}
			if tc.after == time.Hour {
				tc.after = 59*time.Minute + 50*time.Second + afterTime
			}
			if !tc.failed && result.After() != tc.after {
				t.Errorf("again after %s", result.After())
			}
			// The next start does not wait for the backoff of one that failed.
			if tc.failed && (strings.HasPrefix(tc.did, "create") || strings.Contains(name, "replaced")) && (result.After() == 0 || result != result.Due()) {
				t.Error("it is not looked at again for the next start")
			}
			if got := r.Requests(); got != tc.did {
				t.Errorf("did %s", got)
			}
			if got := r.Told(); got != tc.told {
				t.Errorf("told %s", got)
			}
			if slices.ContainsFunc(tc.fails, func(f failure) bool { return f.resource == "cronjobs" }) {
				return
			}
			if got := activeNames(r.status(t)); got != tc.active {
				t.Errorf("active %s", got)
			}
		})
	}
}

// TestARefusedDeletionIsNone has the deletions of Jobs refused with a conflict, as an
// admission webhook may do, and then carried out.
func TestARefusedDeletionIsNone(t *testing.T) {
	refused := apierrors.NewConflict(jobResource, "a", errors.New("refused by a webhook"))
	told := `Warning FailedDelete Deleted job: ` + refused.Error()
	for name, tc := range map[string]struct {
		objects           []runtime.Object
		failed            bool
		after             time.Duration
		toldThen, toldNow string
	}{
		"of the history": {[]runtime.Object{hourly(last(hour(12))), job("a", failed), job("b", failed)}, false, historyRetry,
			told, "Normal SuccessfulDelete Deleted job a"},
		"of the history, of one that was active": {[]runtime.Object{hourly(last(hour(12)), lists("a"), history(1, 0)), job("a", failed)}, false, historyRetry,
			told + "; Normal SawCompletedJob Saw completed job: a, condition: Failed", "Normal SuccessfulDelete Deleted job a"},
		"of one to be replaced": {[]runtime.Object{hourly(last(hour(11)), lists("a"), replace), job("a")}, true, 0,
			told, "Normal SuccessfulDelete Deleted job a; Normal SuccessfulCreate Created job " + noonJob},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigWith(t, tc.objects...)
			refuses := true
			r.Client.PrependReactor("delete", "jobs", func(ktesting.Action) (bool, runtime.Object, error) { return refuses, nil, refused })
			result := r.Reconcile(t.Context(), web)
			if errors.Is(result.Err(), refused) != tc.failed || !tc.failed && result.After() != tc.after {
				t.Errorf("got %v, again after %s", result.Err(), result.After())
			}
			if got := r.Told(); got != tc.toldThen {
				t.Errorf("told %s", got)
			}
			if behind := r.Behind(web); len(behind) > 0 {
				t.Errorf("waits for %v", behind)
			}
			refuses = false
			if err := r.Reconcile(t.Context(), web).Err(); err != nil {
				t.Error(err)
			}
			if got := r.Told(); got != tc.toldNow {
				t.Errorf("told %s then", got)
			}
		})
	}
}

func TestDeletionsAreOfTheJobThatWasMeant(t *testing.T) {
	c := hourly(last(hour(11)), lists("a"), replace)
	r := rigWith(t, c, job("a"), job("b", failed), job("c", failed))
	if err := r.Reconcile(t.Context(), web).Err(); err != nil {
		t.Fatal(err)
	}
	var deleted []string
	for _, action := range r.Client.Actions() {
		if d, ok := action.(ktesting.DeleteActionImpl); ok {
			if *d.DeleteOptions.PropagationPolicy != metav1.DeletePropagationBackground || string(*d.DeleteOptions.Preconditions.UID) != d.Name {
				t.Errorf("options %+v", d.DeleteOptions)
			}
			deleted = append(deleted, d.Name)
		}
	}
	if !slices.Equal(deleted, []string{"b", "a"}) {
		t.Errorf("deleted %v", deleted)
	}
	if behind := r.Behind(web); len(behind) == 0 {
		t.Error("the next look does not wait for the caches")
	}
}

// The namespace goes, and the CronJob with it; until then it is tried ever more rarely.
func TestAStartInANamespaceThatEndsIsTriedAgain(t *testing.T) {
	ending := apierrors.NewForbidden(jobResource, noonJob, errors.New("ending"))
	ending.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
	client := fake.NewClientset(hourly(last(hour(11))))
	var tries atomic.Int32
	client.PrependReactor("create", "jobs", func(ktesting.Action) (bool, runtime.Object, error) {
		tries.Add(1)
		return true, nil, ending
	})
	clock := clocktesting.NewFakeClock(noon)
	shared := informers.NewSharedInformerFactory(client, 0)
	hand := fixture.Hand(client, record.NewFakeRecorder(100))
	hand.Clock = clock
	c, err := New(shared.Batch().V1().CronJobs(), shared.Batch().V1().Jobs(), hand, 1)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, shared)
	fixture.Eventually(t, "a third try", func() bool { clock.Step(time.Second); return tries.Load() >= 3 })
}

// A schedule that cannot be read gives an event when it is written, and waits for the next one.
func TestAScheduleThatBecomesUnreadable(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after *batchv1.CronJob
		told          string
		woken         int
	}{
		"the schedule is changed to it":        {hourly(), hourly(schedule("often")), "Warning UnParseableCronJobSchedule unparseable schedule for cronjob: often", 0},
		"its zone is none":                     {hourly(), hourly(schedule("TZ=Mars/Phobos * * * * *")), "Warning UnParseableCronJobSchedule unparseable schedule for cronjob: TZ=Mars/Phobos * * * * *", 0},
		"the zone is changed, it is as it was": {hourly(schedule("often")), hourly(schedule("often"), zone("Asia/Tokyo")), "Warning UnParseableCronJobSchedule unparseable schedule for cronjob: often", 0},
		"something else is changed":            {hourly(schedule("often")), hourly(schedule("often"), suspended), "", 1},
		"it is made so":                        {nil, hourly(schedule("often")), "", 1},
		"it can be read":                       {hourly(schedule("often")), hourly(), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigWith(t)
			var w woken
			r.cronJobChanged(runner.Change[batchv1.CronJob]{Old: tc.before, New: tc.after}, &w)
			if got := r.Told(); got != tc.told {
				t.Errorf("told %s", got)
			}
			if w.now != tc.woken {
				t.Errorf("woke %d", w.now)
			}
		})
	}
}

// woken notes what a watch rule wakes.
type woken struct {
	now   int
	later time.Duration
}

func (w *woken) Add(types.NamespacedName)                         { w.now++ }
func (w *woken) AddAfter(_ types.NamespacedName, d time.Duration) { w.later = d }

func TestWhichJobsWakeTheirCronJob(t *testing.T) {
	pods := func(n int32) jobOption { return func(j *batchv1.Job) { j.Status.Active = n } }
	orphan := func(j *batchv1.Job) { j.OwnerReferences = nil }
	of := func(owner, kind, uid string) jobOption {
		return func(j *batchv1.Job) { r := &j.OwnerReferences[0]; r.Name, r.Kind, r.UID = owner, kind, types.UID(uid) }
	}
	for name, tc := range map[string]struct {
		before, after *batchv1.Job
		want          int
	}{
		"it is there":                     {nil, job("a"), 1},
		"it is gone":                      {job("a"), nil, 1},
		"pods come and go":                {job("a", pods(1)), job("a", pods(2)), 0},
		"it has begun":                    {job("a"), job("a", begun(0)), 0},
		"it has ended":                    {job("a"), job("a", complete(0)), 1},
		"it has ended, and stays so":      {job("a", complete(0)), job("a", complete(0)), 0},
		"it says later when it ended":     {job("a", over(batchv1.JobComplete)), job("a", complete(0)), 1},
		"it is being deleted":             {job("a"), job("a", leaving), 1},
		"another of its name":             {job("a"), job("a", func(j *batchv1.Job) { j.UID = "b" }), 1},
		"it was released":                 {job("a"), job("a", orphan), 1},
		"it was adopted":                  {job("a", orphan), job("a"), 1},
		"nobody's":                        {nil, job("a", orphan), 0},
		"of a CronJob that is not there":  {nil, job("a", of("none", "CronJob", "web")), 0},
		"of one that had the name before": {nil, job("a", of("web", "CronJob", "old")), 0},
		"of something else":               {nil, job("a", of("web", "Workflow", "web")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			var w woken
			rigWith(t, hourly()).jobChanged(runner.Change[batchv1.Job]{Old: tc.before, New: tc.after}, &w)
			if w.now != tc.want {
				t.Errorf("woke %d", w.now)
			}
		})
	}
}

func TestItRunsByTheClock(t *testing.T) {
	client := fake.NewClientset()
	clock := clocktesting.NewFakeClock(noon)
	shared := informers.NewSharedInformerFactory(client, 0)
	hand := fixture.Hand(client, record.NewFakeRecorder(100))
	hand.Clock = clock
	c, err := New(shared.Batch().V1().CronJobs(), shared.Batch().V1().Jobs(), hand, 5)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, shared)
	made := func() (names []string) {
		list, err := client.BatchV1().Jobs("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	}
	if _, err := client.BatchV1().CronJobs("ns").Create(t.Context(), hourly(created(noon)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "a planned look", func() bool { k, _ := c.Key("ns/web"); return k.NextLook == "59m50.1s" })
	clock.Step(59*time.Minute + 50*time.Second)
	if got := made(); len(got) != 0 {
		t.Errorf("made %v before the time", got)
	}
	fixture.Eventually(t, "the job", func() bool { clock.Step(10 * time.Millisecond); return len(made()) == 1 })
	// A key that waiting for its caches is looked at again by the clock.
	fixture.Eventually(t, "the look after the next hour", func() bool {
		clock.Step(10 * time.Millisecond)
		k, _ := c.Key("ns/web")
		return strings.HasPrefix(k.NextLook, "59m") && k.Failures == 0
	})
	if got := made(); !slices.Equal(got, []string{jobName(hourly(), hour(13))}) {
		t.Errorf("made %v", got)
	}
}
