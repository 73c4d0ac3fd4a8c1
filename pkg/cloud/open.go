package cloud

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	cloudprovider "k8s.io/cloud-provider"
	netutils "k8s.io/utils/net"
)

// Open makes the cloud provider of that name from its configuration file; "" is for none.
// It returns nil when no provider of this build is asked for.
func Open(name, file string) (cloudprovider.Interface, error) {
	if name == "" || cloudprovider.IsExternal(name) {
		return nil, nil
	}
	var config io.Reader // nil, and not a nil file, when there is none
	if file != "" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("--cloud-config=%s: couldn't open cloud provider configuration: %w", file, err)
		}
		defer opened.Close()
		config = opened
	}
	made, err := cloudprovider.GetCloudProvider(name, config)
	switch {
	case err != nil && file != "":
		return nil, fmt.Errorf("--cloud-provider=%s --cloud-config=%s: could not init cloud provider %q: %w", name, file, name, err)
	case err != nil:
		return nil, fmt.Errorf("--cloud-provider=%s: could not init cloud provider %q: %w", name, name, err)
	case made == nil:
		return nil, fmt.Errorf("--cloud-provider=%s: unknown cloud provider %q", name, name)
	}
	return made, nil
}

// ErrNoClusterID is of a cloud in which the cluster cannot distinguish its own resources from others.
var ErrNoClusterID = errors.New("no ClusterID found.  A ClusterID is required for the cloud provider to function properly.  " +
	"This check can be bypassed by setting the allow-untagged-cloud option")

// ClusterCIDRs parses the ranges within which routes belong to the cluster: one, or one of
// each family.
func ClusterCIDRs(value string) ([]*net.IPNet, error) {
	cidrs, err := netutils.ParseCIDRs(strings.Split(strings.TrimSpace(value), ","))
	if err != nil {
		return nil, fmt.Errorf("--cluster-cidr=%s: routes need the cluster CIDR, or --configure-cloud-routes=false: %w", value, err)
	}
	if dual, _ := netutils.IsDualStackCIDRs(cidrs); len(cidrs) > 1 && !dual {
		return nil, fmt.Errorf("--cluster-cidr=%s: len of ClusterCIDRs==%d and they are not configured as dual stack (at least one from each IPFamily)", value, len(cidrs))
	}
	if len(cidrs) > 2 {
		return nil, fmt.Errorf("--cluster-cidr=%s: length of clusterCIDRs is:%d more than max allowed of 2", value, len(cidrs))
	}
	return cidrs, nil
}
