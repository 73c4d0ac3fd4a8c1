package podcertificaterequestcleaner

import (
	"errors"
	"testing"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func request(age time.Duration) *certificatesv1beta1.PodCertificateRequest {
	r := &certificatesv1beta1.PodCertificateRequest{}
	r.Namespace, r.Name, r.UID, r.CreationTimestamp = "team", "r", "u", metav1.NewTime(noon.Add(-age))
	return r
}

func TestPlan(t *testing.T) {
	leaving := request(time.Hour)
	leaving.DeletionTimestamp = &metav1.Time{Time: noon}
	issued := request(time.Minute)
	issued.Status.Conditions = []metav1.Condition{{Type: "Issued", Status: metav1.ConditionTrue}}
	for name, tc := range map[string]struct {
		request *certificatesv1beta1.PodCertificateRequest
		wants   string
		again   time.Duration
	}{
		"a new one is looked at when it is old":        {request(0), "", 15 * time.Minute},
		"one from a clock that is ahead waits longer":  {request(-time.Minute), "", 16 * time.Minute},
		"an issued one is kept as long":                {issued, "", 14 * time.Minute},
		"a second before its time it stays":            {request(15*time.Minute - time.Second), "", time.Second},
		"at its time it goes":                          {request(15 * time.Minute), "delete PodCertificateRequest r", 0},
		"one from before the last restart goes":        {request(24 * time.Hour), "delete PodCertificateRequest r", 0},
		"one on its way out is not deleted once again": {leaving, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if p := plan(tc.request, noon); fixture.Planned(p) != tc.wants || p.RequeueAfter != tc.again || p.Why == "" {
				t.Errorf("wants %q because %q, again after %s", fixture.Planned(p), p.Why, p.RequeueAfter)
			}
		})
	}
}

func TestARequestThatIsGoneIsNothingToDo(t *testing.T) {
	rig := fixture.New(fake.NewClientset(), noon)
	c, err := New(rig.In.Certificates().V1beta1().PodCertificateRequests(), rig.Hand())
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Reconcile(t.Context(), key{Namespace: "team", Name: "r"}); got.Err() != nil || got.After() != 0 || rig.Requests() != "" {
		t.Errorf("got %v and sent %s", got, rig.Requests())
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
			rig := fixture.New(client, noon)
			c, err := New(rig.In.Certificates().V1beta1().PodCertificateRequests(), rig.Hand())
			if err != nil {
				t.Fatal(err)
			}
			rig.Cache(t, request(time.Hour))
			got := c.Reconcile(t.Context(), key{Namespace: "team", Name: "r"})
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
	rig := fixture.New(client, noon)
	c, err := New(rig.In.Certificates().V1beta1().PodCertificateRequests(), rig.Hand())
	if err != nil {
		t.Fatal(err)
	}
	c.LookLive(fixture.Live(client))
	rig.Cache(t, request(time.Hour))
	k := key{Namespace: "team", Name: "r"}
	if err := c.Reconcile(t.Context(), k).Err(); !apierrors.IsConflict(err) || len(c.Behind(k)) > 0 {
		t.Errorf("got %v, and waits for %v", err, c.Behind(k))
	}
	refuse = false
	if err := c.Reconcile(t.Context(), k).Err(); err != nil {
		t.Error(err)
	}
	if _, err := client.CertificatesV1beta1().PodCertificateRequests("team").Get(t.Context(), "r", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the request: %v", err)
	}
}
