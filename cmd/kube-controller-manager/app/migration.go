package app

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/leaderelection"
	cmconfig "k8s.io/controller-manager/config"
	cmconfigv1alpha1 "k8s.io/controller-manager/config/v1alpha1"
	"k8s.io/controller-manager/pkg/leadermigration"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/election"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// runMigrating runs the controllers under two locks: those that move between
// controller managers under the migration lock, the rest and the service
// account token controller under the main lock. The migration lock is competed
// for once the main controllers run, because what runs under it may need tokens.
func (p *process) runMigrating(ctx context.Context, e *election.Elections, watchdog *leaderelection.HealthzAdaptor, all term) error {
	migration := p.ComponentConfig.Generic.LeaderMigration
	var internal cmconfig.LeaderMigrationConfiguration
	if err := cmconfigv1alpha1.Convert_v1alpha1_LeaderMigrationConfiguration_To_config_LeaderMigrationConfiguration(&migration, &internal, nil); err != nil {
		return fmt.Errorf("read the leader migration configuration: %w", err)
	}
	main, migrated := split(all, leadermigration.NewLeaderMigrator(&internal, component).FilterFunc)
	for name := range all.controllers {
		if main.controllers[name] == nil && migrated.controllers[name] == nil {
			p.debug.Set(name, debug.Skipped, "the leader migration configuration gives it to another component")
		}
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan struct{})
	main.started = func() { close(ready) }
	done := make(chan error, 2)
	go func() {
		done <- e.Run(ctx, p.mainLease(), watchdog, func(ctx context.Context, f *election.Fence) error { return p.lead(ctx, main, f) })
	}()
	go func() {
		select {
		case <-ready:
		case <-ctx.Done():
			done <- nil
			return
		}
		lock := election.Lease{Namespace: p.ComponentConfig.Generic.LeaderElection.ResourceNamespace, Name: migration.LeaderName, Type: migration.ResourceLock}
		done <- e.Run(ctx, lock, nil, func(ctx context.Context, f *election.Fence) error { return p.lead(ctx, migrated, f) })
	}()
	first := <-done
	if errors.Is(first, election.ErrLost) {
		return first
	}
	cancel()
	return errors.Join(first, <-done)
}

// split sorts controllers to the lock they run under. One that the
// configuration gives to another component runs under none.
func split(all term, filter leadermigration.FilterFunc) (main, migrated term) {
	main = term{name: all.name, token: all.token, controllers: map[string]InitFunc{}}
	migrated = term{name: all.name + "-migrated", controllers: map[string]InitFunc{}}
	for name, start := range all.controllers {
		switch resultFor(name, filter) {
		case leadermigration.ControllerMigrated:
			migrated.controllers[name] = start
		case leadermigration.ControllerNonMigrated:
			main.controllers[name] = start
		}
	}
	return main, migrated
}

// resultFor also finds a controller that the configuration calls by an older name.
func resultFor(name string, filter leadermigration.FilterFunc) leadermigration.FilterResult {
	for alias, canonical := range names.KCMControllerAliases() {
		if canonical == name {
			if result := filter(alias); result != leadermigration.ControllerNonMigrated {
				return result
			}
		}
	}
	return filter(name)
}
