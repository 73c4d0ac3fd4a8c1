package app

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/shadow"
	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

func TestAShadowTakesNoLeaseNoTokensAndWritesNoEvents(t *testing.T) {
	for name, of := range map[string]*config.Shadow{"a shadow": {Window: time.Minute, ReadOnly: &transport.ReadOnly{}}, "a process that writes": nil} {
		t.Run(name, func(t *testing.T) {
			c := testConfig(t)
			c.Shadow = of
			c.ComponentConfig.Generic.LeaderElection.LeaderElect = ptr.To(true)
			c.ComponentConfig.KubeCloudShared.UseServiceAccountCredentials = true
			p := testProcess(t, c)
			isShadow := of != nil
			if p.leaderElect() == isShadow || (p.sendsEvents(p.Client.CoreV1()) == nil) != isShadow {
				t.Errorf("elects: %t, sends events: %t", p.leaderElect(), p.sendsEvents(p.Client.CoreV1()) != nil)
			}
			root := clientbuilder.SimpleControllerClientBuilder{ClientConfig: c.Kubeconfig}
			if _, same := controllerClients(t.Context(), p, root, p.Client.CoreV1(), nil).(clientbuilder.SimpleControllerClientBuilder); same != isShadow {
				t.Errorf("controllers have the credentials of the process: %t", same)
			}
			answer := httptest.NewRecorder()
			p.endpoints().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, shadowPath, nil))
			var report shadow.Report
			if served := answer.Code == http.StatusOK && json.Unmarshal(answer.Body.Bytes(), &report) == nil; served != isShadow || served && report.Window != "1m0s" {
				t.Errorf("%s says %d %s", shadowPath, answer.Code, answer.Body)
			}
		})
	}
}

func TestAShadowDoesNotLead(t *testing.T) {
	for name, tc := range map[string]struct {
		shadow *config.Shadow
		terms  int32
		leads  bool
	}{
		"a shadow":                   {&config.Shadow{ReadOnly: &transport.ReadOnly{}}, 1, false},
		"a process in its term":      {nil, 1, true},
		"a process with two terms":   {nil, 2, true},
		"a process before its terms": {nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := testConfig(t)
			c.Shadow = tc.shadow
			p := testProcess(t, c)
			p.leading.Store(tc.terms)
			watched.of.Store(p)
			defer watched.of.Store(nil)
			if metric := seriesOf(t, "")["kcm_leader"]; (metric == 1) != tc.leads || metric > 1 {
				t.Errorf("kcm_leader is %v", metric)
			}
			if by := p.why.self(); by.Leading != tc.leads || by.Shadow != (tc.shadow != nil) {
				t.Errorf("who answers: %+v", by)
			}
		})
	}
}

func TestAShadowKnowsWhichNamespacesAreEnding(t *testing.T) {
	s := &shadowing{}
	if s.ending("leaving") {
		t.Error("ending before anything is known")
	}
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, leaves := range map[string]bool{"leaving": true, "staying": false} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if leaves {
			ns.DeletionTimestamp = ptr.To(metav1.Now())
		}
		if err := index.Add(ns); err != nil {
			t.Fatal(err)
		}
	}
	lister := corelisters.NewNamespaceLister(index)
	s.namespaces.Store(&lister)
	for name, want := range map[string]bool{"leaving": true, "staying": false, "unknown": false, "": false} {
		if got := s.ending(name); got != want {
			t.Errorf("%q is ending: %t", name, got)
		}
	}
}

func TestWhoseWorkAWriteIs(t *testing.T) {
	for w, want := range map[shadow.Written]string{
		{Kind: "Pod", Owner: "ReplicaSet"}:            names.ReplicaSetController,
		{Kind: "ReplicaSet", Owner: "Deployment"}:     names.DeploymentController,
		{Kind: "EndpointSlice", Owner: "Endpoints"}:   names.EndpointSliceMirroringController,
		{Kind: "PersistentVolumeClaim", Owner: "Pod"}: names.EphemeralVolumeController,
		{Kind: "ResourceClaim", Owner: "Pod"}:         names.ResourceClaimController,
		{Kind: "Job"}:                                 names.JobController,
		{Kind: "Pod"}:                                 "",
		{Kind: "Pod", Owner: "Widget"}:                "",
	} {
		if got := makerOf(w); got != want {
			t.Errorf("%+v is the work of %q, want %q", w, got, want)
		}
	}
	for _, table := range []map[string]string{makers, makersOf, reporters} {
		for _, controller := range slices.Sorted(maps.Values(table)) {
			if !slices.Contains(names.All(), controller) {
				t.Errorf("there is no controller %s", controller)
			}
		}
	}
}
