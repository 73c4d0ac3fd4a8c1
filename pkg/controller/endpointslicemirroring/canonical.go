package endpointslicemirroring

//lint:file-ignore SA1019 the old API is what this controller mirrors

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// subset is ports and all addresses that offer exactly these.
type subset struct {
	ports     []corev1.EndpointPort // in the order of comparePorts
	addresses []address             // the ready ones first, each part by IP as text
}

type address struct {
	corev1.EndpointAddress
	ready bool
}

// identity is what makes two records of an address one.
type identity struct {
	ip  string
	uid types.UID
}

// canonical returns the one way to say what the subsets offer: each port once with all of
// its addresses, and the ports that the same addresses offer together. Of two records
// of an address the first is kept; one that is ready and not ready for a port is not
// ready. The subsets are not changed.
func canonical(subsets []corev1.EndpointSubset) []subset {
	records := map[identity]corev1.EndpointAddress{}
	offers := map[string]map[identity]bool{} // whether they are ready, by port and address
	ports := map[string][]corev1.EndpointPort{}
	add := func(port []corev1.EndpointPort, addresses []corev1.EndpointAddress, ready bool) {
		key := portsKey(port)
		for i := range addresses {
			id := identityOf(&addresses[i])
			if _, known := records[id]; !known {
				records[id] = addresses[i]
			}
			if offers[key] == nil {
				offers[key], ports[key] = map[identity]bool{}, port
			}
			before, known := offers[key][id]
			offers[key][id] = ready && (before || !known)
		}
	}
	for i := range subsets {
		s := &subsets[i]
		for _, port := range each(s.Ports) {
			add(port, s.Addresses, true)
			add(port, s.NotReadyAddresses, false)
		}
	}
	return together(offers, ports, records)
}

// each returns the ports one by one; no ports at all are one of its own kind.
func each(ports []corev1.EndpointPort) [][]corev1.EndpointPort {
	if len(ports) == 0 {
		return [][]corev1.EndpointPort{nil}
	}
	all := make([][]corev1.EndpointPort, 0, len(ports))
	for i := range ports {
		all = append(all, ports[i:i+1])
	}
	return all
}

// together joins the ports that the same addresses offer.
func together(offers map[string]map[identity]bool, ports map[string][]corev1.EndpointPort, records map[identity]corev1.EndpointAddress) []subset {
	var all []subset
	at := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(offers)) {
		addresses := make([]address, 0, len(offers[key]))
		for id, ready := range offers[key] {
			addresses = append(addresses, address{records[id], ready})
		}
		slices.SortFunc(addresses, compareAddresses)
		by := names(addresses)
		if len(ports[key]) == 0 {
			by = "none " + by
		}
		i, known := at[by]
		if !known {
			i = len(all)
			at[by] = i
			all = append(all, subset{addresses: addresses})
		}
		all[i].ports = append(all[i].ports, ports[key]...)
	}
	for i := range all {
		sortPorts(all[i].ports)
	}
	return all
}

func compareAddresses(a, b address) int {
	if a.ready != b.ready {
		if a.ready {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(identityOf(&a.EndpointAddress).uid, identityOf(&b.EndpointAddress).uid))
}

func comparePorts(a, b corev1.EndpointPort) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
}

func identityOf(a *corev1.EndpointAddress) identity {
	id := identity{ip: a.IP}
	if a.TargetRef != nil {
		id.uid = a.TargetRef.UID
	}
	return id
}

// names is the addresses as a string: two lists that differ have different ones.
func names(addresses []address) string {
	var all strings.Builder
	for i := range addresses {
		id := identityOf(&addresses[i].EndpointAddress)
		all.WriteString(strconv.Quote(id.ip) + string(id.uid) + strconv.FormatBool(addresses[i].ready) + ",")
	}
	return all.String()
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

func sortPorts(ports []corev1.EndpointPort) { slices.SortFunc(ports, comparePorts) }
