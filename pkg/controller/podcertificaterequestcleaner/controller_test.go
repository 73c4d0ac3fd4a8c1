package podcertificaterequestcleaner

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/testrig"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func request(age time.Duration) *certificatesv1beta1.PodCertificateRequest {
	r := &certificatesv1beta1.PodCertificateRequest{}
	r.Namespace, r.Name, r.UID, r.CreationTimestamp = "team", "r", "u", metav1.NewTime(noon.Add(-age))
	return r
}

func TestDecide(t *testing.T) {
	leaving := request(time.Hour)
	leaving.DeletionTimestamp = &metav1.Time{Time: noon}
	issued := request(time.Minute)
	issued.Status.Conditions = []metav1.Condition{{Type: "Issued", Status: metav1.ConditionTrue}}
	for name, tc := range map[string]struct {
		request *certificatesv1beta1.PodCertificateRequest
		want    plan
	}{
		"a request that is gone":                       {nil, plan{Why: "the request is gone"}},
		"a new one is looked at when it is old":        {request(0), plan{Why: "the request is not old enough", again: 15 * time.Minute}},
		"one from a clock that is ahead waits longer":  {request(-time.Minute), plan{Why: "the request is not old enough", again: 16 * time.Minute}},
		"an issued one is kept as long":                {issued, plan{Why: "the request is not old enough", again: 14 * time.Minute}},
		"a second before its time it stays":            {request(15*time.Minute - time.Second), plan{Why: "the request is not old enough", again: time.Second}},
		"at its time it goes":                          {request(15 * time.Minute), plan{Delete: true, Why: "the request is old"}},
		"one from before the last restart goes":        {request(24 * time.Hour), plan{Delete: true, Why: "the request is old"}},
		"one on its way out is not deleted once again": {leaving, plan{Why: "the request is being deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.request, noon), cmp.AllowUnexported(plan{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorsOfDelete(t *testing.T) {
	resource := Resource.GroupResource()
	for name, tc := range map[string]struct {
		err  error
		fail bool
	}{
		"a deletion is done":                               {nil, false},
		"one that has gone is no error":                    {apierrors.NewNotFound(resource, "r"), false},
		"a webhook may refuse with a conflict":             {apierrors.NewConflict(resource, "r", errors.New("denied")), true},
		"a refusal is retried":                             {apierrors.NewForbidden(resource, "r", errors.New("policy")), true},
		"an API server that cannot be reached is no reply": {errors.New("connection refused"), true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			var uid string
			client.PrependReactor("delete", "podcertificaterequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
				uid = string(*a.(clienttesting.DeleteAction).GetDeleteOptions().Preconditions.UID)
				return true, nil, tc.err
			})
			requests := informers.NewSharedInformerFactory(client, 0).Certificates().V1beta1().PodCertificateRequests()
			c, err := New(requests, client, Options{Clock: testingclock.NewFakeClock(noon)})
			if err != nil {
				t.Fatal(err)
			}
			if err := requests.Informer().GetStore().Add(request(time.Hour)); err != nil {
				t.Fatal(err)
			}
			got := c.sync(t.Context(), key{Namespace: "team", Name: "r"})
			if (got.Err() != nil) != tc.fail || uid != "u" {
				t.Errorf("got %v after a deletion of UID %q, want an error: %v", got.Err(), uid, tc.fail)
			}
		})
	}
}

func TestARefusedDeletionIsTriedAgain(t *testing.T) {
	client := fake.NewClientset(request(time.Hour))
	refuse := true
	client.PrependReactor("delete", "podcertificaterequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refuse, nil, apierrors.NewConflict(Resource.GroupResource(), "r", errors.New("denied by a webhook"))
	})
	requests := informers.NewSharedInformerFactory(client, 0).Certificates().V1beta1().PodCertificateRequests()
	c, err := New(requests, client, Options{Clock: testingclock.NewFakeClock(noon)})
	if err != nil {
		t.Fatal(err)
	}
	c.LookLive(testrig.Live(client))
	if err := requests.Informer().GetStore().Add(request(time.Hour)); err != nil {
		t.Fatal(err)
	}
	k := key{Namespace: "team", Name: "r"}
	if err := c.sync(t.Context(), k).Err(); !apierrors.IsConflict(err) || len(c.writes.Behind(k)) > 0 {
		t.Errorf("got %v, and waits for %v", err, c.writes.Behind(k))
	}
	refuse = false
	if err := c.sync(t.Context(), k).Err(); err != nil {
		t.Error(err)
	}
	if _, err := client.CertificatesV1beta1().PodCertificateRequests("team").Get(t.Context(), "r", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the request: %v", err)
	}
}
