package explore

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// ranged is a node without a kubelet, which has ranges of its own at times.
func ranged(d *Draw, name string) Object {
	o := Object{"apiVersion": "v1", "kind": "Node", "metadata": d.Metadata(name), "spec": Object{}}
	if ranges := One(d, nil, nil, nil, []any{"10.244.4.0/24", "fd00:10:244:1::/64"}, []any{"10.244.5.0/24", "fd00:10:244:1::/64"}, []any{"10.244.6.0/24"}); ranges != nil {
		o["spec"] = Object{"podCIDR": ranges[0], "podCIDRs": ranges}
	}
	if d.Chance(15) {
		Set(o, []string{"spec", "unschedulable"}, true)
	}
	return o
}

// takesBlocksBack finds the reference taking a block back from a node whose patches were refused,
// and trying others with it. With ours it stays that node's, so that none may be left for others.
func takesBlocksBack(_ *Script, requests []harness.AuditEvent, finding *compare.Finding) string {
	refused, most := map[string]int{}, 0
	for _, r := range requests {
		if r.Verb == "patch" && r.ObjectRef != nil && r.ObjectRef.Resource == "nodes" && r.ResponseStatus.Code >= http.StatusBadRequest {
			refused[r.ObjectRef.Name]++
			most = max(most, refused[r.ObjectRef.Name])
		}
	}
	about := strings.Contains(finding.Subject, "Normal CIDRNotAvailable") || strings.Contains(finding.Subject, "Normal CIDRAssignmentFailed")
	switch {
	case most < 3:
	case finding.Kind == compare.KindEvent && about:
		return "After three failed patches the original takes a block back and tries with another one."
	case finding.Kind == compare.KindWrites && strings.HasPrefix(finding.Subject, "change nodes (refused)"):
		return "A refused patch is tried at growing intervals; with ours a new node of the same name starts with the shortest."
	}
	return ""
}

func init() {
	names := []string{"a", "b", "c", "d", "e"}
	register(&Family{
		Name:  "noderange",
		Start: []string{"node-ipam-controller"},
		// Four ranges of each family, one of them that of Services.
		Flags: []string{"--allocate-node-cidrs", "--cluster-cidr=10.244.4.0/22,fd00:10:244::/62", "--node-cidr-mask-size-ipv4=24", "--node-cidr-mask-size-ipv6=64",
			"--service-cluster-ip-range=10.244.7.0/24,fd00:10:244:3::/112"},
		Compared: []string{"nodes"},
		Quiet:    time.Second,
		Fresh:    true,
		Explains: takesBlocksBack,
		Begin: func(d *Draw, s *Script) {
			for i, name := range names {
				s.Objects[name+".yaml"] = ranged(d, "$NS-"+name)
				if i == 0 || d.Chance(40) {
					s.Steps = append(s.Steps, "apply "+name+".yaml")
				}
			}
		},
		Moves: slices.Concat([]Move{
			{8, About(names, "apply %s.yaml")},
			{5, About(names, "delete nodes/$NS-%s", "delete nodes/$NS-%s\napply %s.yaml")},
			{4, About(names, "label nodes/$NS-%s touched=%d", "node $NS-%s cordon", `status nodes/$NS-%s {"phase":"Running"}`)},
			{3, About(names, `patch nodes/$NS-%s {"spec":{"podCIDR":"10.244.5.0/24","podCIDRs":["10.244.5.0/24","fd00:10:244:2::/64"]}}`,
				`patch nodes/$NS-%s {"spec":{"podCIDR":"10.244.4.0/24","podCIDRs":["10.244.4.0/24"]}}`, `patch nodes/$NS-%s {"spec":{"podCIDR":null,"podCIDRs":null}}`)},
			{2, About(names, `patch nodes/$NS-%s {"metadata":{"finalizers":["x.example/hold"]}}`, `patch nodes/$NS-%s {"metadata":{"finalizers":null}}`)},
			{2, Line("restart", "stop\ndelete nodes/$NS-a\napply b.yaml\nstart", "stop\napply c.yaml\nstart")},
		}, Disturbances("nodes")),
	})
}
