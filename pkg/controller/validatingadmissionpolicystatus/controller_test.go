package validatingadmissionpolicystatus

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/openapitest"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// server publishes the OpenAPI documents of a release, with faults.
type server struct {
	mu          sync.Mutex
	listed      error
	read        map[string]error
	says        map[string]string // in place of the document
	version     string
	lists, docs int
}

func (s *server) Paths() (map[string]openapi.GroupVersion, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if s.listed != nil {
		return nil, s.listed
	}
	list, err := openapitest.NewEmbeddedFileClient().Paths()
	for path, published := range list {
		list[path] = faulty{published, s, path}
	}
	return list, err
}

// published is discovery of some documents.
type published struct {
	discovery.DiscoveryInterface
	documents openapi.Client
}

func (p published) OpenAPIV3() openapi.Client { return p.documents }

func schemasOf(documents openapi.Client) resolver.SchemaResolver {
	return &resolver.ClientDiscoveryResolver{Discovery: published{documents: documents}}
}

type faulty struct {
	openapi.GroupVersion
	server *server
	path   string
}

func (f faulty) ServerRelativeURL() string { return "/openapi/v3/" + f.path + f.server.version }

func (f faulty) Schema(contentType string) ([]byte, error) {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	f.server.docs++
	if err := f.server.read[f.path]; err != nil {
		return nil, err
	}
	if said, is := f.server.says[f.path]; is {
		return []byte(said), nil
	}
	return f.GroupVersion.Schema(contentType)
}

// kinds is a mapper that fails when told to.
type kinds struct {
	meta.RESTMapper
	err    error
	resets int
}

func (k *kinds) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	if k.err != nil {
		return nil, k.err
	}
	return k.RESTMapper.KindsFor(resource)
}

func (k *kinds) Reset() { k.resets++ }

type parts struct {
	*Controller
	client *fake.Clientset
	shared informers.SharedInformerFactory
	server *server
	kinds  *kinds
	clock  *testclock.FakeClock
}

func prepare(t *testing.T, policies ...*admissionv1.ValidatingAdmissionPolicy) parts {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	p := parts{client: fake.NewClientset(), server: &server{read: map[string]error{}, says: map[string]string{}}, kinds: &kinds{RESTMapper: mapper}, clock: testclock.NewFakeClock(time.Now())}
	p.shared = informers.NewSharedInformerFactory(p.client, 0)
	informer := p.shared.Admissionregistration().V1().ValidatingAdmissionPolicies()
	var err error
	hand := fixture.Hand(p.client, nil)
	hand.Clock = p.clock
	p.Controller, err = New(informer, hand, Options{Workers: 2, Mapper: p.kinds, Documents: p.server, SchemasOf: schemasOf})
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range policies {
		if err := p.client.Tracker().Add(policy); err != nil {
			t.Fatal(err)
		}
		if err := informer.Informer().GetStore().Add(policy); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

var numbered = regexp.MustCompile(`([A-Z][a-z]+)\d+`)

func TestWarnings(t *testing.T) {
	withMessage := policy("object.spec.replicas > 1")
	withMessage.Spec.MatchConstraints.ResourceRules = withMessage.Spec.MatchConstraints.ResourceRules[:1]
	withMessage.Spec.Validations[0].MessageExpression = "'too few: ' + object.spec.replicas"
	withParam := policy("object.metadata.name == params.name", "object.metadata.name == params.spec.nodeName")
	withParam.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "Pod"}
	unknownParam := policy("object.metadata.name == params.name")
	unknownParam.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "example.com/v1", Kind: "Limit"}
	unserved := policy("object.metadata.nam == 'a'")
	unserved.Spec.MatchConstraints = nil
	about(unserved, "example.com", "things")
	wild := policy("object.metadata.nam == 'a'")
	wild.Spec.MatchConstraints = nil
	about(wild, "*", "*")
	for name, tc := range map[string]struct {
		policy *admissionv1.ValidatingAdmissionPolicy
		want   []admissionv1.ExpressionWarning
		left   []string
	}{
		"expressions that are right": {policy("object.metadata.name == 'a'", "has(object.metadata.labels)"), nil, nil},
		"a field that one of the kinds lacks": {policy("object.metadata.name == 'a'", "object.spec.replicas > 1"),
			[]admissionv1.ExpressionWarning{{FieldRef: "spec.validations[1].expression",
				Warning: "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'replicas'\n | object.spec.replicas > 1\n | ...........^\n"}}, nil},
		"a message of the wrong type": {withMessage,
			[]admissionv1.ExpressionWarning{{FieldRef: "spec.validations[0].messageExpression",
				Warning: "apps/v1, Kind=Deployment: ERROR: <input>:1:13: found no matching overload for '_+_' applied to '(string, int)'\n | 'too few: ' + object.spec.replicas\n | ............^\n"}}, nil},
		"a field that the parameter lacks": {withParam,
			[]admissionv1.ExpressionWarning{{FieldRef: "spec.validations[0].expression",
				Warning: "/v1, Kind=Pod: ERROR: <input>:1:31: undefined field 'name'\n | object.metadata.name == params.name\n | ..............................^\n\n" +
					"apps/v1, Kind=Deployment: ERROR: <input>:1:31: undefined field 'name'\n | object.metadata.name == params.name\n | ..............................^\n"}}, nil},
		"a parameter of a kind without a schema may be anything": {unknownParam, nil, []string{"example.com/v1, Kind=Limit"}},
		"a resource that is not served is left out":              {unserved, nil, []string{"example.com/v1, Resource=things"}},
		"wildcards are left out":                                 {wild, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := prepare(t)
			got, left, err := p.check(tc.policy)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				got[i].Warning = numbered.ReplaceAllString(got[i].Warning, "$1")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatCannotBeLookedUp(t *testing.T) {
	down := apierrors.NewServiceUnavailable("no endpoints")
	refused := errors.New("connection refused")
	forbidden, broken := apierrors.NewForbidden(schema.GroupResource{}, "", nil), apierrors.NewInternalError(errors.New("broken"))
	for name, tc := range map[string]struct {
		fault func(parts)
		err   error
		left  []string
	}{
		"a list that cannot be read is retried":         {func(p parts) { p.server.listed = refused }, refused, nil},
		"a document that cannot be read is retried":     {func(p parts) { p.server.read["apis/apps/v1"] = refused }, refused, nil},
		"an API server that cannot be asked is retried": {func(p parts) { p.kinds.err = refused }, refused, nil},
		"a group whose server is down is left out":      {func(p parts) { p.server.read["apis/apps/v1"] = down }, nil, []string{"apps/v1, Kind=Deployment"}},
		"a document that is refused is left out":        {func(p parts) { p.server.read["apis/apps/v1"] = forbidden }, nil, []string{"apps/v1, Kind=Deployment"}},
		"a broken document is left out":                 {func(p parts) { p.server.read["apis/apps/v1"] = broken }, nil, []string{"apps/v1, Kind=Deployment"}},
		"a document of another version of OpenAPI is left out": {func(p parts) {
			p.server.says["apis/apps/v1"] = `{"components":{"schemas":{"X":{"type":"object","exclusiveMinimum":0}}}}`
		}, nil, []string{"apps/v1, Kind=Deployment"}},
		"a document with a schema that is null is left out": {func(p parts) {
			p.server.says["apis/apps/v1"] = `{"components":{"schemas":{"D":{"type":"object","x-kubernetes-group-version-kind":[{"group":"apps","version":"v1","kind":"Deployment"}],` +
				`"properties":{"spec":{"$ref":"#/components/schemas/X"}}},"X":null}}}`
		}, nil, []string{"apps/v1, Kind=Deployment"}},
		"a document that the API server does not answer with is retried": {func(p parts) { p.server.read["apis/apps/v1"] = context.DeadlineExceeded }, context.DeadlineExceeded, nil},
		"a broken list is retried":                                       {func(p parts) { p.server.listed = broken }, broken, nil},
		"a refused list of kinds is retried":                             {func(p parts) { p.kinds.err = forbidden }, forbidden, nil},
		"nothing wrong":                                                  {func(parts) {}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := prepare(t)
			tc.fault(p)
			_, left, err := p.check(policy("object.metadata.name == 'a'"))
			if !errors.Is(err, tc.err) {
				t.Errorf("got error %v", err)
			}
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNothingIsReportedOfACheckThatWasCutShort(t *testing.T) {
	p := prepare(t, policy("object.spec.replicas > 1"))
	p.server.read["api/v1"] = errors.New("connection refused")
	if got := p.Reconcile(t.Context(), "p"); got.Err() == nil || len(p.client.Actions()) > 0 {
		t.Errorf("got %v, %v", got.Err(), p.client.Actions())
	}
	p.server.read["api/v1"] = nil
	if got := p.Reconcile(t.Context(), "p"); got.Err() != nil || len(p.client.Actions()) != 1 {
		t.Errorf("got %v, %v", got.Err(), p.client.Actions())
	}
	if o, err := p.observe(t.Context(), "p"); err != nil || len(o.warnings) != 1 {
		t.Errorf("got %v, %v", o.warnings, err)
	}
}

func TestARefusedStatusIsRetried(t *testing.T) {
	p := prepare(t, policy("true"))
	refused := apierrors.NewForbidden(admissionv1.Resource("validatingadmissionpolicies"), "p", errors.New("policy"))
	body := ""
	p.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		body = string(action.(clienttesting.PatchAction).GetPatch())
		return true, nil, refused
	})
	if got := p.Reconcile(t.Context(), "p").Err(); !errors.Is(got, refused) {
		t.Errorf("got %v", got)
	}
	if !strings.Contains(body, `"uid":"uid"`) {
		t.Errorf("another policy of that name would count as checked: %s", body)
	}
}

func TestSchemasAreKeptForAWhile(t *testing.T) {
	p := prepare(t)
	check := func(want int) {
		t.Helper()
		if _, _, err := p.check(policy("true")); err != nil {
			t.Fatal(err)
		}
		if p.server.docs != want {
			t.Errorf("%d documents were read, want %d", p.server.docs, want)
		}
	}
	check(2)
	check(2)
	p.server.version = "?hash=new"
	check(4)
	p.clock.Step(keepSchemas)
	if keeps(t, p) {
		t.Error("unused schemas are kept")
	}
	check(6)
	if !keeps(t, p) {
		t.Error("nobody comes back to drop the schemas")
	}
	p.clock.Step(keepSchemas)
	if got := p.Reconcile(t.Context(), "gone"); got.Err() != nil || got.After() != 0 || len(p.schemas.known) != 0 {
		t.Errorf("comes again after %v with %d schemas", got.After(), len(p.schemas.known))
	}
}

// keeps looks at a policy that is gone, and reports whether schemas are kept; its key
// comes again then.
func keeps(t *testing.T, p parts) bool {
	t.Helper()
	got := p.Reconcile(t.Context(), "gone")
	if got.Err() != nil || got.After() != 0 && got.After() != keepSchemas {
		t.Errorf("comes again after %v, %v", got.After(), got.Err())
	}
	return got.After() > 0
}

// reported counts warnings; the fake drops an empty typeChecking.
func reported(policy *admissionv1.ValidatingAdmissionPolicy) int {
	if policy.Status.TypeChecking == nil {
		return 0
	}
	return len(policy.Status.TypeChecking.ExpressionWarnings)
}

func TestEachGenerationIsCheckedOnce(t *testing.T) {
	p := prepare(t)
	fixture.Run(t, p.client, p.Run, p.shared)

	policies := p.client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	created, err := policies.Create(t.Context(), policy("object.spec.replicas > 1"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reports := func(generation int64, warnings int) *admissionv1.ValidatingAdmissionPolicy {
		t.Helper()
		var got *admissionv1.ValidatingAdmissionPolicy
		err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			var err error
			got, err = policies.Get(ctx, "p", metav1.GetOptions{})
			return err == nil && got.Status.ObservedGeneration == generation && reported(got) == warnings, nil
		})
		if err != nil {
			t.Fatalf("waited in vain for generation %d with %d warnings, got %v", generation, warnings, got.Status)
		}
		return got
	}
	changed := reports(created.Generation, 1).DeepCopy()
	changed.Generation++
	changed.Spec.Validations[0].Expression = "object.metadata.name != ''"
	if _, err := policies.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	reports(changed.Generation, 0)
	written := 0
	for _, action := range p.client.Actions() {
		if action.GetVerb() == "patch" {
			written++
		}
	}
	if written != 2 {
		t.Errorf("%d writes, want 2", written)
	}
}

// Behind the API server one may be stuck for good.
func TestADocumentOfAnotherServerThatIsStuckIsLeftOut(t *testing.T) {
	s := &server{read: map[string]error{}}
	list := map[string]openapi.GroupVersion{}
	for _, path := range []string{"api/v1", "apis/apps/v1", "apis/apiextensions.k8s.io/v1", "apis/apiregistration.k8s.io/v1", "apis/things.example.com/v1"} {
		s.read[path] = context.DeadlineExceeded
		list[path] = faulty{nil, s, path}
	}
	for path, published := range newPaths(list) {
		_, err := published.Schema("")
		if left := errors.Is(err, errWithheld); left != (path == "apis/things.example.com/v1") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
