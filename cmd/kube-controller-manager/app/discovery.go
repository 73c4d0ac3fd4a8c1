package app

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

// groupPatience is how long a start asks again for groups of the API server
// itself when other groups are known.
const groupPatience = 10 * time.Second

// availableResources asks the API server what it serves, as a set and in its own words. A group whose server
// does not answer only costs what needs that group.
func availableResources(ctx context.Context, client discovery.DiscoveryInterface) (map[schema.GroupVersionResource]bool, []*metav1.APIResourceList, error) {
	lists, err := discover(ctx, client)
	if len(lists) == 0 && err != nil {
		return nil, nil, fmt.Errorf("discover the served resources: %w", err)
	}
	if err != nil {
		klog.FromContext(ctx).Info("Some API groups cannot be discovered; controllers that need them are not started", "err", err)
	}
	available := map[schema.GroupVersionResource]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, nil, fmt.Errorf("parse served version %q: %w", list.GroupVersion, err)
		}
		for _, resource := range list.APIResources {
			available[version.WithResource(resource.Name)] = true
		}
	}
	return available, lists, nil
}

// discover asks what is served, again while the API server refuses for now. It
// does not wait for the servers of others.
func discover(ctx context.Context, client discovery.DiscoveryInterface) (lists []*metav1.APIResourceList, err error) {
	failed := transport.Try(ctx, "discovery", startPatience, func() error {
		lists, err = transport.Within(ctx, func() ([]*metav1.APIResourceList, error) {
			_, lists, err := client.ServerGroupsAndResources()
			return lists, err
		})
		if len(lists) > 0 {
			return nil // what is missing concerns those who need it
		}
		return err
	})
	if failed != nil {
		return nil, failed
	}
	refused, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	soon, cancel := context.WithTimeout(ctx, groupPatience)
	defer cancel()
	for group, why := range refused {
		// Those of the API server itself; the servers of others may be away for long.
		if !scheme.Scheme.IsGroupRegistered(group.Group) || !transport.Passing(why) {
			continue
		}
		again := transport.Try(soon, "discovery of "+group.String(), groupPatience, func() error {
			list, err := transport.Within(ctx, func() (*metav1.APIResourceList, error) {
				return client.ServerResourcesForGroupVersion(group.String())
			})
			if err == nil {
				lists = append(lists, list)
			}
			return err
		})
		if again == nil {
			delete(refused, group)
		}
	}
	if partly && len(refused) == 0 {
		return lists, nil
	}
	return lists, err
}
