package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/kube-kcm/kube-controller-manager/"

var (
	// clientPackages have types that make requests or write events.
	clientPackages = regexp.MustCompile(`^k8s\.io/(client-go/(kubernetes|dynamic|metadata|rest|scale|discovery|openapi|openapi3)|metrics/pkg/client|[a-z-]+/pkg/client/clientset)(/|$)`)
	// below are the packages that decide nothing: they carry requests, or are for tests.
	below = regexp.MustCompile(`^(pkg/(cloud|informers/cache|informers/monitor|election|slicewriter|transport)|test/fixture|staging/controllerkit/(act|consistency|ownership|reconcile|examples/.*))$`)
	// objects are the packages of what a request is about.
	objects = regexp.MustCompile(`^k8s\.io/(api|apimachinery/pkg/(apis|runtime|watch)|apiextensions-apiserver/pkg/apis|metrics/pkg/apis)(/|$)`)
	// clientTypes are those of packages that have others too.
	clientTypes = []string{
		"k8s.io/client-go/tools/record.EventRecorder", "k8s.io/client-go/tools/record.EventRecorderLogger",
		"sigs.k8s.io/controller-runtime/pkg/client.Client", "sigs.k8s.io/controller-runtime/pkg/client.WithWatch",
		"sigs.k8s.io/controller-runtime/pkg/client.Writer", "sigs.k8s.io/controller-runtime/pkg/client.StatusWriter",
		"sigs.k8s.io/controller-runtime/pkg/client.SubResourceWriter", "sigs.k8s.io/controller-runtime/pkg/client.SubResourceClient",
	}
	// impurePackages and impureCalls are what a plan may not call: packages, and functions and
	// methods of others.
	impurePackages = regexp.MustCompile(`^(math/rand(/v2)?|crypto/rand|os|net(/.*)?|k8s\.io/utils/clock|k8s\.io/component-base/featuregate|k8s\.io/apiserver/pkg/util/feature)$`)
	impureCalls    = regexp.MustCompile(`^(time\.(Now|Since|Until|After|AfterFunc|Tick|Sleep|NewTimer|NewTicker)|\(sigs\.k8s\.io/controller-runtime/pkg/client\.(Reader|Writer|Client|SubResource\w+)\)\.\w+)$`)
	// pureCalls are those of impure packages that ask nobody: what an address says of itself.
	pureCalls = regexp.MustCompile(`^\(net\.IP\)\.`)
	// planned are the results that make a function one that plans.
	planned = []string{module + "staging/controllerkit/act.Plan", module + "staging/controllerkit/act.Step"}
)

// byTypes holds the rules that names cannot: no client in a package that decides, and
// no clock, gate, client or randomness within reach of a plan.
func byTypes(found func(string, ...any), patterns ...string) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
	}, patterns...)
	if err != nil {
		found("load the packages: %v", err)
		return
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			found("%s: %v", p.PkgPath, e)
		}
	}
	used := map[exception]bool{}
	for _, p := range loaded {
		in := strings.TrimPrefix(p.PkgPath, module)
		if below.MatchString(in) {
			continue
		}
		for _, f := range withoutClients(p, func(what string) bool {
			excuse := exception{in, what}
			used[excuse] = exceptions[excuse] != ""
			return used[excuse]
		}) {
			found("%s", f)
		}
	}
	for excuse := range exceptions {
		if !used[excuse] && slices.ContainsFunc(loaded, func(p *packages.Package) bool { return p.PkgPath == module+excuse.in }) {
			found("%s: holds no %s; the exception is not needed", excuse.in, excuse.what)
		}
	}
	purePlans(loaded, found)
}

// withoutClients returns the fields, parameters and variables of a package that hold a
// client, and the places that reach for the one in a hand.
func withoutClients(p *packages.Package, excused func(what string) bool) []string {
	var odd []string
	for name, object := range p.TypesInfo.Defs {
		if v, is := object.(*types.Var); is {
			if client := clientIn(v.Type(), name.Name, 0); client != "" && !excused(client) {
				odd = append(odd, fmt.Sprintf("%s: %s is a client (%s); the kit holds it", at(p, name), name.Name, client))
			}
		}
	}
	for expression, selection := range p.TypesInfo.Selections {
		if selection.Kind() != types.FieldVal {
			continue
		}
		if client := clientIn(selection.Type(), expression.Sel.Name, 0); client != "" && !excused(client) {
			odd = append(odd, fmt.Sprintf("%s: reaches for a client (%s); return a step", at(p, expression), expression.Sel.Name))
		}
	}
	slices.Sort(odd)
	return odd
}

// clientIn returns the type that makes requests in what is of type t and has that name;
// empty if none does.
func clientIn(t types.Type, name string, depth int) string {
	if depth > 5 {
		return ""
	}
	switch t := t.(type) {
	case *types.Alias:
		return clientIn(types.Unalias(t), name, depth+1)
	case *types.Named:
		return namedClient(t, depth)
	case *types.Pointer:
		return clientIn(t.Elem(), name, depth+1)
	case *types.Slice:
		return clientIn(t.Elem(), name, depth+1)
	case *types.Map:
		return clientIn(t.Elem(), name, depth+1)
	case *types.Chan:
		return clientIn(t.Elem(), name, depth+1)
	case *types.Signature:
		if asks(t) {
			return "func " + name
		}
		for v := range t.Results().Variables() {
			if client := clientIn(v.Type(), name, depth+1); client != "" {
				return client
			}
		}
	}
	return ""
}

// namedClient looks into functions and interfaces of this module, by which a client may
// come in under another name.
func namedClient(t *types.Named, depth int) string {
	if t.Obj().Pkg() == nil {
		return ""
	}
	path := t.Obj().Pkg().Path()
	name := strings.TrimPrefix(path, module) + "." + t.Obj().Name()
	switch {
	case clientPackages.MatchString(path), slices.Contains(clientTypes, name):
		return name
	case !strings.HasPrefix(path, module):
		return ""
	}
	client := ""
	switch under := t.Underlying().(type) {
	case *types.Signature:
		client = clientIn(under, name, depth+1)
	case *types.Interface:
		for method := range under.Methods() {
			client = cmp.Or(client, clientIn(method.Signature(), name, depth+1))
		}
	}
	if client == "" {
		return ""
	}
	return name
}

// asks reports whether a function makes requests, by what it takes and returns: a context,
// and objects of the API.
func asks(f *types.Signature) bool {
	waits, about := false, false
	for v := range f.Params().Variables() {
		waits = waits || v.Type().String() == "context.Context"
		about = about || isObject(v.Type())
	}
	for v := range f.Results().Variables() {
		about = about || isObject(v.Type())
	}
	return waits && about
}

// isObject reports whether values of this type are objects of the API, or a watch of them.
func isObject(t types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.Pointer:
		return isObject(t.Elem())
	case *types.Slice:
		return isObject(t.Elem())
	case *types.Named:
		return t.Obj().Pkg() != nil && objects.MatchString(t.Obj().Pkg().Path())
	}
	return false
}

// purePlans follows the calls of every function that plans.
func purePlans(loaded []*packages.Package, found func(string, ...any)) {
	bodies := map[*types.Func]body{}
	for _, p := range loaded {
		for _, file := range p.Syntax {
			for _, decl := range file.Decls {
				if f, is := decl.(*ast.FuncDecl); is && f.Body != nil {
					if object, is := p.TypesInfo.Defs[f.Name].(*types.Func); is {
						bodies[object] = body{p, f}
					}
				}
			}
		}
	}
	for f, b := range bodies {
		if plans(f) {
			follow(f, b, bodies, map[*types.Func]bool{}, func(format string, args ...any) {
				found("%s: "+format, append([]any{at(b.in, b.decl.Name)}, args...)...)
			})
		}
	}
}

// body is a function and the package that it is in.
type body struct {
	in   *packages.Package
	decl *ast.FuncDecl
}

// plans reports whether a function returns a plan or steps of one.
func plans(f *types.Func) bool {
	for v := range f.Signature().Results().Variables() {
		t := v.Type()
		if s, is := t.(*types.Slice); is {
			t = s.Elem()
		}
		if slices.Contains(planned, t.String()) {
			return true
		}
	}
	return false
}

// follow looks at everything that a body names, and at the bodies of its own package.
func follow(from *types.Func, b body, bodies map[*types.Func]body, seen map[*types.Func]bool, found func(string, ...any)) {
	if seen[from] {
		return
	}
	seen[from] = true
	ast.Inspect(b.decl.Body, func(n ast.Node) bool {
		name, is := n.(*ast.Ident)
		if !is {
			return true
		}
		called, is := b.in.TypesInfo.Uses[name].(*types.Func)
		if !is || called.Pkg() == nil {
			return true
		}
		switch inner, own := bodies[called.Origin()]; {
		case pureCalls.MatchString(called.FullName()):
		case impurePackages.MatchString(called.Pkg().Path()), clientPackages.MatchString(called.Pkg().Path()), impureCalls.MatchString(called.FullName()):
			found("plans, and reaches %s at %s; what a plan needs is observed before", called.FullName(), at(b.in, name))
		case own:
			follow(called.Origin(), inner, bodies, seen, found)
		}
		return true
	})
}

// at is where a node is, from the working directory.
func at(p *packages.Package, n ast.Node) string {
	position := p.Fset.Position(n.Pos())
	here, _ := os.Getwd()
	return fmt.Sprintf("%s:%d", strings.TrimPrefix(position.Filename, here+"/"), position.Line)
}
