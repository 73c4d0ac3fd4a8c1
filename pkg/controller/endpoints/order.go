package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/dump"

	"github.com/kube-kcm/kube-controller-manager/pkg/services"
)

// sorted brings subsets into the order in which every Kubernetes stores them:
// addresses by IP and pod, ports and subsets by hash. Any other order would
// rewrite each object once when the binary is changed.
func sorted(subsets []corev1.EndpointSubset) []corev1.EndpointSubset {
	for i := range subsets {
		slices.SortFunc(subsets[i].Addresses, services.CompareAddresses)
		slices.SortFunc(subsets[i].NotReadyAddresses, services.CompareAddresses)
		sortByHash(subsets[i].Ports)
	}
	sortByHash(subsets)
	return subsets
}

// sortByHash computes each hash once; a subset may be large.
func sortByHash[T any](items []T) {
	if len(items) < 2 {
		return
	}
	type hashed struct {
		item T
		hash []byte
	}
	all := make([]hashed, len(items))
	for i, item := range items {
		hash := fnv.New128a()
		fmt.Fprint(hash, dump.ForHash(item))
		all[i] = hashed{item, hash.Sum(nil)}
	}
	slices.SortStableFunc(all, func(a, b hashed) int { return bytes.Compare(a.hash, b.hash) })
	for i := range all {
		items[i] = all[i].item
	}
}
