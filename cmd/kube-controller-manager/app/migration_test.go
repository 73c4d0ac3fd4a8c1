package app

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	cmconfig "k8s.io/controller-manager/config"
	"k8s.io/controller-manager/pkg/leadermigration"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

func TestMigrationSortsControllersToTheirLocks(t *testing.T) {
	var s starts
	all := term{name: component, token: s.ok("token"), controllers: map[string]InitFunc{
		names.JobController: s.ok("job"), names.NodeLifecycleController: s.ok("nodes"),
		names.TaintEvictionController: s.ok("taints"), names.ServiceLBController: s.ok("lb"),
	}}
	config := &cmconfig.LeaderMigrationConfiguration{LeaderName: "migration", ControllerLeaders: []cmconfig.ControllerLeaderConfiguration{
		{Name: names.NodeLifecycleController, Component: component},
		{Name: names.TaintEvictionController, Component: "cloud-controller-manager"},
		{Name: "service", Component: "*"}, // an older name
	}}
	main, migrated := split(all, leadermigration.NewLeaderMigrator(config, component).FilterFunc)
	if diff := cmp.Diff([]string{names.JobController}, slices.Sorted(maps.Keys(main.controllers))); diff != "" {
		t.Errorf("under the main lock (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{names.NodeLifecycleController, names.ServiceLBController}, slices.Sorted(maps.Keys(migrated.controllers))); diff != "" {
		t.Errorf("under the migration lock (-want +got):\n%s", diff)
	}
	if main.token == nil || migrated.token != nil {
		t.Error("the token controller belongs to the main lock")
	}
	if main.name == migrated.name {
		t.Error("two sets of caches have one name")
	}
}
