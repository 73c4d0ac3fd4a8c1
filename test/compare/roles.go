package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// KindRole: ours sent a request that the controller's bootstrap role does not allow.
const KindRole = "role"

// Roles are the rules of the bootstrap roles, by the service account they are for.
type Roles map[string][]rbacv1.PolicyRule

// and adds the rules of another API server, whose feature gates may give more.
func (r Roles) and(more Roles) Roles {
	sum := maps.Clone(more)
	for name, rules := range r {
		sum[name] = slices.Clone(sum[name])
		for _, rule := range rules {
			if !slices.ContainsFunc(sum[name], func(other rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(rule, other) }) {
				sum[name] = append(sum[name], rule)
			}
		}
	}
	return sum
}

// RoleUse is what one controller asked of one resource, and what it may ask.
type RoleUse struct {
	Controller string `json:"controller"`
	// Resource is "resource.group/subresource".
	Resource string `json:"resource"`
	// Reference, Ours and Allowed are verbs.
	Reference []string `json:"reference,omitempty"`
	Ours      []string `json:"ours,omitempty"`
	Allowed   []string `json:"allowed,omitempty"`
}

var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// requestName is "verb resource.group/subresource".
func requestName(event harness.AuditEvent) string {
	name := event.ObjectRef.Resource
	if event.ObjectRef.APIGroup != "" {
		name += "." + event.ObjectRef.APIGroup
	}
	if event.ObjectRef.Subresource != "" {
		name += "/" + event.ObjectRef.Subresource
	}
	return event.Verb + " " + name
}

// allow reports whether a role allows a request. A rule for certain names allows
// it: the server has looked at the name already.
func (r Roles) allow(who, verb, resource string) bool {
	plain, sub, _ := strings.Cut(resource, "/")
	name, group, grouped := strings.Cut(plain, ".")
	for grouped && !r.allowIn(who, verb, name, group, sub) {
		// Resources of metrics have dots of their own: deployments.apps in custom.metrics.k8s.io.
		var more string
		if more, group, grouped = strings.Cut(group, "."); !grouped {
			return false
		}
		name += "." + more
	}
	return grouped || r.allowIn(who, verb, name, "", sub)
}

func (r Roles) allowIn(who, verb, name, group, sub string) bool {
	names := []string{name, "*"}
	if sub != "" {
		names = []string{name + "/" + sub, "*/" + sub, "*"}
	}
	return slices.ContainsFunc(r[who], func(rule rbacv1.PolicyRule) bool {
		return shares(rule.Verbs, verb, "*") && shares(rule.APIGroups, group, "*") && shares(rule.Resources, names...)
	})
}

func shares(some []string, others ...string) bool {
	return slices.ContainsFunc(some, func(s string) bool { return slices.Contains(others, s) })
}

// resources are those that a role names.
func (r Roles) resources(who string) []string {
	var all []string
	for _, rule := range r[who] {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name, sub, divided := strings.Cut(resource, "/")
				if group != "" {
					name += "." + group
				}
				if divided {
					name += "/" + sub
				}
				all = append(all, name)
			}
		}
	}
	return all
}

// Uses holds the requests of all stories against the roles, for each controller
// that ours has. Others are those that asked with the reference only.
func (r Roles) Uses(results []Result) (uses []RoleUse, others []string) {
	reference, ours := map[string]map[string]int{}, map[string]map[string]int{}
	for _, result := range results {
		addUp(reference, result.Reference.Used)
		addUp(ours, result.Ours.Used)
	}
	for _, who := range both(reference, ours) {
		if len(ours[who]) == 0 {
			others = append(others, who)
			continue
		}
		rows := map[string]*RoleUse{}
		row := func(resource string) *RoleUse {
			if rows[resource] == nil {
				rows[resource] = &RoleUse{Controller: who, Resource: resource}
			}
			return rows[resource]
		}
		for _, request := range slices.Sorted(maps.Keys(reference[who])) {
			verb, resource, _ := strings.Cut(request, " ")
			row(resource).Reference = append(row(resource).Reference, verb)
		}
		for _, request := range slices.Sorted(maps.Keys(ours[who])) {
			verb, resource, _ := strings.Cut(request, " ")
			row(resource).Ours = append(row(resource).Ours, verb)
		}
		for _, resource := range r.resources(who) {
			row(resource)
		}
		for _, resource := range slices.Sorted(maps.Keys(rows)) {
			for _, verb := range verbs {
				if r.allow(who, verb, resource) {
					rows[resource].Allowed = append(rows[resource].Allowed, verb)
				}
			}
			uses = append(uses, *rows[resource])
		}
	}
	return uses, others
}

// Exceeds finds the requests of ours that no bootstrap role allows, whether the
// server has refused them or something else than the role let them pass.
func Exceeds(uses []RoleUse) []Finding {
	var findings []Finding
	for _, use := range uses {
		for _, verb := range use.Ours {
			if slices.Contains(use.Allowed, verb) {
				continue
			}
			detail := "the bootstrap role does not allow it; the reference does not use it"
			if slices.Contains(use.Reference, verb) {
				detail = "the bootstrap role does not allow it; the reference uses it too"
			}
			findings = append(findings, Finding{Story: allStories, Controller: use.Controller, Kind: KindRole, Subject: verb + " " + use.Resource, Detail: detail, More: true})
		}
	}
	return findings
}

// roleLine is for a terminal.
func (r *Report) roleLine() string {
	who, requests := map[string]bool{}, 0
	for _, use := range r.Uses {
		who[use.Controller] = true
		requests += len(use.Ours)
	}
	return fmt.Sprintf("roles: %d controllers, %d kinds of requests of ours, %d outside of the bootstrap role", len(who), requests, len(Exceeds(r.Uses)))
}

// markdownRoles shows what was asked beside what may be asked.
func (r *Report) markdownRoles(b *strings.Builder) {
	if len(r.Uses) == 0 {
		return
	}
	b.WriteString("\n## Requests against the bootstrap roles\n\n" +
		"What controllers asked for in all stories, and what their bootstrap role allows as the kube-apiserver serves it.\n\n" +
		"| Controller | Resource | Reference | Ours | Allowed |\n|---|---|---|---|---|\n")
	for _, use := range r.Uses {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", use.Controller, use.Resource,
			strings.Join(use.Reference, " "), strings.Join(use.Ours, " "), strings.Join(use.Allowed, " "))
	}
	if len(r.Others) > 0 {
		fmt.Fprintf(b, "\nWith the reference only: %s.\n", strings.Join(r.Others, ", "))
	}
}
