package cache

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
)

// TestEveryInformerIsRecorded asks for all that there are, in both ways.
func TestEveryInformerIsRecorded(t *testing.T) {
	factory, generic := NewFactory(fake.NewClientset(), 0), NewFactory(fake.NewClientset(), 0)
	groups := reflect.TypeFor[informers.SharedInformerFactory]()
	asked := 0
	for i := range groups.NumMethod() {
		method := groups.Method(i)
		if method.Type.NumIn() > 0 || method.Type.NumOut() != 1 || !strings.HasSuffix(method.Type.Out(0).String(), ".Interface") {
			continue
		}
		group := reflect.ValueOf(factory).MethodByName(method.Name).Call(nil)[0]
		for v := range group.NumMethod() {
			version := group.Method(v).Call(nil)[0]
			for k := range version.NumMethod() {
				informer := version.Method(k).Call(nil)[0].MethodByName("Informer").Call(nil)[0].Interface().(toolscache.SharedIndexInformer)
				if asked++; !slices.Contains(factory.Asked(), informer) {
					t.Errorf("an informer of %s %s is not recorded", method.Name, version.Type())
				}
			}
		}
	}
	if asked < 50 || len(factory.Asked()) != asked {
		t.Errorf("%d informers were asked for and %d are recorded", asked, len(factory.Asked()))
	}
	for kind := range factory.asked {
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		informer, err := generic.ForResource(resource)
		if err != nil || generic.AskedKinds()[kind.GroupKind()] == nil || generic.asked[kind] != informer.Informer() {
			t.Errorf("%s was asked for as a resource and is not recorded (%v)", kind, err)
		}
	}
	if len(generic.Asked()) != asked {
		t.Errorf("%d resources were asked for and %d are recorded", asked, len(generic.Asked()))
	}
}

// It looks at the first list that each asks of the API server.
func TestWhatInformersAskFor(t *testing.T) {
	for name, tc := range map[string]struct {
		narrow                   Narrow
		namespace, field, labels string
	}{
		"all":                         {func(c kubernetes.Interface, resync time.Duration) *Factory { return NewFactory(c, resync) }, "", "", ""},
		"all, trimmed in another way": {TrimmedBy(Trim), "", "", ""},
		"of a field":                  {Only("", "type", "a/b"), "", "type=a/b", ""},
		"of a field in a namespace":   {Only("ns", "metadata.name", "a"), "ns", "metadata.name=a", ""},
		"of a label in a namespace":   {Labelled("ns", "app", "a"), "ns", "", "app=a"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			factory := tc.narrow(client, 0)
			secrets := factory.Core().V1().Secrets().Informer()
			if factory.AskedKinds()[schema.GroupKind{Kind: "Secret"}] != secrets {
				t.Error("it is not recorded")
			}
			ctx, stop := context.WithCancel(t.Context())
			factory.StartWithContext(ctx)
			factory.WaitForCacheSyncWithContext(ctx)
			stop()
			factory.Shutdown()
			list, is := client.Actions()[0].(clienttesting.ListActionImpl)
			if !is || list.Namespace != tc.namespace || list.ListOptions.FieldSelector != tc.field || list.ListOptions.LabelSelector != tc.labels ||
				list.ListOptions.ResourceVersion != "" { // a new leader would lack what the one before has just written
				t.Errorf("asked for %+v", client.Actions()[0])
			}
		})
	}
}
