package scenarios

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// quiet is how long the controllers must write nothing to have settled: a status that can wait
// does so for up to two seconds while the API server is busy.
const quiet, quietPatience = 2300 * time.Millisecond, 10 * time.Second

// clusterWide are the resources without a namespace that controllers write.
var clusterWide = []schema.GroupVersionResource{
	{Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "nodes"}, {Version: "v1", Resource: "persistentvolumes"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"},
	{Group: "certificates.k8s.io", Version: "v1beta1", Resource: "clustertrustbundles"},
	{Group: "internal.apiserver.k8s.io", Version: "v1alpha1", Resource: "storageversions"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "servicecidrs"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "resource.k8s.io", Version: "v1beta2", Resource: "devicetaintrules"},
	{Group: "resource.k8s.io", Version: "v1alpha3", Resource: "resourcepoolstatusrequests"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattributesclasses"},
	{Group: "storagemigration.k8s.io", Version: "v1beta1", Resource: "storageversionmigrations"},
}

// anyName are those whose names need not be the story's: all of them are removed
// when a story ends.
var anyName = []string{"nodes", "persistentvolumes", "volumeattachments"}

// Stage plays stories one after the other on a control plane of its own and
// keeps what came of them, for a comparison.
type Stage struct {
	suite *suite
}

// Take is what one story left behind.
type Take struct {
	// Namespace is the story's.
	Namespace string
	// Objects are those at the end, except events and leases.
	Objects []unstructured.Unstructured
	// Requests are the writes of the controllers that concern the story, and
	// what they have read meanwhile.
	Requests []harness.AuditEvent
	// Waits are those of the expectations, in their order.
	Waits []Waited
}

// NewStage starts a control plane that records what controllers write. The
// flags are those of the stories' apiserver lines.
func NewStage(t testing.TB, binary string, apiServerFlags []string) *Stage {
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{RecordBodies: true, APIServerArgs: apiServerFlags})
	return &Stage{suite: newSuiteOn(t, cp, binary, false)}
}

// Play runs a story in the namespace that the caller names. Failures go to t.
func (s *Stage) Play(t testing.TB, story *Story, namespace string) Take {
	take := Take{Namespace: namespace}
	s.suite.playIn(t, story, namespace, func(ctx context.Context, r *run) {
		mark := s.suite.auditMark
		take.Waits = r.waits
		if err := s.suite.settle(ctx); err != nil {
			t.Errorf("%s: wait for the controllers to be done: %v", story.Path, err)
		}
		var err error
		if take.Objects, err = r.objects(ctx); err != nil {
			t.Errorf("%s: list the objects at the end: %v", story.Path, err)
		}
		for _, event := range s.suite.cp.Audit.Since(mark) {
			if !event.Write() || r.concerns(event) {
				take.Requests = append(take.Requests, event)
			}
		}
	})
	return take
}

// Roles are the rules of the bootstrap roles of the manager and its controllers,
// by the name of the user, as the API server serves them.
func (s *Stage) Roles(ctx context.Context) (map[string][]rbacv1.PolicyRule, error) {
	list, err := s.suite.typed.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the bootstrap roles: %w", err)
	}
	roles := map[string][]rbacv1.PolicyRule{}
	for _, role := range list.Items {
		if name, ok := strings.CutPrefix(role.Name, "system:controller:"); ok {
			roles[name] = role.Rules
		} else if role.Name == "system:kube-controller-manager" {
			roles["kube-controller-manager"] = role.Rules
		}
	}
	// Some controllers have their leave for one namespace only.
	inNamespaces, err := s.suite.typed.RbacV1().Roles(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the bootstrap roles of namespaces: %w", err)
	}
	for _, role := range inNamespaces.Items {
		if name, ok := strings.CutPrefix(role.Name, "system:controller:"); ok {
			roles[name] = append(roles[name], role.Rules...)
		}
	}
	return roles, nil
}

// Manager is the one that the last story used.
func (s *Stage) Manager() *harness.Manager { return s.suite.manager }

func (r *run) settle(ctx context.Context, _ Step) error { return r.suite.settle(ctx) }

// settle waits until the controllers are quiet.
func (s *suite) settle(ctx context.Context) error {
	audit := s.cp.Audit
	mark, last := audit.Mark(), time.Now()
	for end := last.Add(quietPatience); time.Since(last) < quiet && time.Now().Before(end); {
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		now := audit.Mark()
		for _, event := range audit.Since(mark) {
			if event.Write() {
				last = time.Now()
			}
		}
		mark = now
	}
	return nil
}

// concerns leaves out what is still being done about an earlier story.
func (r *run) concerns(event harness.AuditEvent) bool {
	ref := event.ObjectRef
	return ref != nil && slices.Contains(anyName, ref.Resource) || strings.Contains(event.RequestURI, r.namespace) ||
		strings.Contains(string(event.RequestObject), r.namespace)
}

// objects lists what the story has left.
func (r *run) objects(ctx context.Context) ([]unstructured.Unstructured, error) {
	resources, err := r.suite.namespaced()
	if err != nil {
		return nil, err
	}
	var found []unstructured.Unstructured
	for _, gvr := range append(resources, clusterWide...) {
		if gvr.Resource == "leases" {
			continue
		}
		list, err := r.suite.resource(gvr, "").List(ctx, metav1.ListOptions{})
		if err != nil {
			if ignoreGone(err) == nil {
				continue
			}
			return nil, fmt.Errorf("list %s: %w", gvr.Resource, err)
		}
		for _, object := range list.Items {
			if slices.Contains(anyName, gvr.Resource) || strings.Contains(object.GetNamespace()+" "+object.GetName(), r.namespace) {
				found = append(found, object)
			}
		}
	}
	return found, nil
}

// Load reads all stories of a directory.
func Load(directory string) ([]*Story, error) {
	paths, err := filepath.Glob(filepath.Join(directory, "*.txtar"))
	if err != nil {
		return nil, fmt.Errorf("list the stories: %w", err)
	}
	stories := make([]*Story, 0, len(paths))
	for _, path := range paths {
		story, err := ParseFile(path)
		if err != nil {
			return nil, err
		}
		stories = append(stories, story)
	}
	return stories, nil
}
