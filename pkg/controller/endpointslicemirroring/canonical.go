package endpointslicemirroring

//lint:file-ignore SA1019 the old API is what this controller mirrors

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/services"
)

// identity is what makes two records of an address one.
type identity struct {
	ip  string
	uid types.UID
}

func identityOf(a corev1.EndpointAddress) identity { return identity{a.IP, services.TargetUID(a)} }

// canonical returns the one way to say what the subsets offer: each port once with all of
// its addresses, and the ports that the same addresses offer together. Of two records
// of an address the first is kept; one that is ready and not ready for a port is not
// ready. The subsets are not changed.
func canonical(subsets []corev1.EndpointSubset) []corev1.EndpointSubset {
	records := map[identity]corev1.EndpointAddress{}
	for i := range subsets {
		for _, a := range slices.Concat(subsets[i].Addresses, subsets[i].NotReadyAddresses) {
			if _, known := records[identityOf(a)]; !known {
				records[identityOf(a)] = a
			}
		}
	}
	all := services.PerPort(subsets)
	slices.SortFunc(all, func(a, b corev1.EndpointSubset) int { return cmp.Compare(portsKey(a.Ports), portsKey(b.Ports)) })
	for i := range all {
		ready := map[identity]bool{}
		for _, a := range all[i].Addresses {
			ready[identityOf(a)] = true
		}
		for _, a := range all[i].NotReadyAddresses {
			ready[identityOf(a)] = false
		}
		all[i].Addresses, all[i].NotReadyAddresses = nil, nil
		for id, is := range ready {
			if is {
				all[i].Addresses = append(all[i].Addresses, records[id])
			} else {
				all[i].NotReadyAddresses = append(all[i].NotReadyAddresses, records[id])
			}
		}
		slices.SortFunc(all[i].Addresses, services.CompareAddresses)
		slices.SortFunc(all[i].NotReadyAddresses, services.CompareAddresses)
	}
	all = services.Together(all, services.SameAddresses(all))
	for i := range all {
		sortPorts(all[i].Ports)
	}
	return all
}

// portsKey is ports as a string: two lists that differ have different ones.
func portsKey(ports []corev1.EndpointPort) string {
	var all strings.Builder
	for _, p := range ports {
		app := "-"
		if p.AppProtocol != nil {
			app = strconv.Quote(*p.AppProtocol)
		}
		all.WriteString(strings.Join([]string{strconv.Quote(p.Name), strconv.Itoa(int(p.Port)), string(p.Protocol), app}, " ") + ",")
	}
	return all.String()
}

func sortPorts(ports []corev1.EndpointPort) {
	slices.SortFunc(ports, func(a, b corev1.EndpointPort) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
	})
}
