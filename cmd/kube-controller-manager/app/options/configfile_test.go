package options

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	kcmv1alpha1 "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/pkg/strictyaml"
)

// withFile returns the process after its flags and its configuration file.
func withFile(t *testing.T, file string, args ...string) (*commandLine, error) {
	t.Helper()
	c := newCommandLine(t)
	if err := c.flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	c.ConfigFile = "kcm.yaml"
	return c, c.useConfigFile([]byte(file))
}

const head = "apiVersion: kube-kcm.github.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n"

func TestEveryFlagHasAField(t *testing.T) {
	c := newCommandLine(t)
	paths, fields := map[string]string{}, map[string]string{}
	for _, f := range c.fields() {
		if other, twice := paths[f.path]; twice {
			t.Errorf("%s is the field of --%s and of --%s", f.path, other, f.flag.Name)
		}
		paths[f.path], fields[f.flag.Name] = f.flag.Name, f.path
	}
	c.flags.VisitAll(func(f *pflag.Flag) {
		_, none := f.Annotations[noField]
		none = none || f.Name == "help" || f.Name == "version"
		if _, has := fields[f.Name]; has == none {
			t.Errorf("--%s has the field %q", f.Name, fields[f.Name])
		}
	})
	for path := range paths {
		for inner := range paths {
			if strings.HasPrefix(inner, path+".") {
				t.Errorf("%s is a field, and %s is in it", path, inner)
			}
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(fieldTable), "\n")[1:] {
		if row := strings.Split(line, "\t"); len(row) != 3 || c.flag(row[0]) == nil || row[2] != "yes" && row[2] != "no" {
			t.Errorf("the table has a row for no flag: %s", line)
		}
	}
}

func TestFieldsAreCalledAsInThePublishedType(t *testing.T) {
	published := map[string]bool{}
	leaves(reflect.TypeFor[kcmv1alpha1.KubeControllerManagerConfiguration](), "", published)
	// What the published type has nowhere.
	ours := map[string]bool{"generic.controllershutdowntimeout": true, "generic.clientconnection.master": true, "generic.leadermigrationconfig": true}
	for _, section := range []string{"featuregates", "emulatedversion", "mincompatibilityversion", "secureserving", "authentication", "authorization", "metrics", "logging", ownFields} {
		ours[section] = true
	}
	for _, f := range newCommandLine(t).fields() {
		path := strings.ToLower(f.path)
		section, _, _ := strings.Cut(path, ".")
		if !published[path] && !ours[path] && !ours[section] {
			t.Errorf("%s (--%s) is not in the published type", f.path, f.flag.Name)
		}
	}
}

// leaves adds the paths of a type, in lower case.
func leaves(of reflect.Type, path string, to map[string]bool) {
	if of.Kind() != reflect.Struct || of.Name() == "Duration" {
		to[path] = true
		return
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name == "" {
			name = of.Field(i).Name
		}
		leaves(of.Field(i).Type, strings.TrimPrefix(path+"."+strings.ToLower(name), "."), to)
	}
}

// samples are values of each type of flag, each as arguments of a command line.
var samples = map[string][][]string{
	"bool":                               {{"true"}, {"false"}},
	"int":                                {{"7"}, {"-1"}},
	"int32":                              {{"7"}, {"-2147483648"}},
	"Level":                              {{"7"}},
	"float32":                            {{"0.25"}, {"-1"}, {"1e+06"}, {"Inf"}},
	"float64":                            {{"0.1"}, {"3"}, {"1e-09"}},
	"duration":                           {{"1h2m3.5s"}, {"0s"}, {"-1ns"}},
	"ip":                                 {{"127.0.0.1"}, {"::1"}},
	"quantity":                           {{"64Ki"}, {"1500"}},
	"string":                             {{""}, {"a b"}, {"true"}, {"1.5"}, {"null"}, {"a,b"}, {"a: b #c"}, {"'\"{["}, {"2026-01-01"}, {"ä"}},
	"stringSlice":                        {{"a"}, {"a,b", "c"}, {`"x,y",z`}, {"true,1"}},
	"int32Slice":                         {{"23,24", "25"}},
	"pattern=N,...":                      {{"a=1"}, {"a=1,b*/c=2"}},
	"namedCertKey":                       {{"c,k"}, {"c,k:one,two", "/d/e.crt,/d/e.key"}},
	"stringToString":                     {{"m,l=v1,v2"}, {`"m,l=v1,v2","n,l=w"`}, {"a=b=c,d=e"}},
	"colonSeparatedMultimapStringString": {{"HPAScaleToZero=true"}, {"kube:HPAScaleToZero=1,kube:AllBeta=F"}, {"AllAlpha=true", "AllBeta=false"}},
}

// set has every flag and what it is set to.
func set(c *commandLine) map[string]string {
	values := map[string]string{}
	for _, f := range c.fields() {
		values[f.flag.Name] = fmt.Sprint(f.value())
	}
	return values
}

// written is the file of a command line.
func written(t *testing.T, onlySet bool, args ...string) (*commandLine, string) {
	t.Helper()
	c := newCommandLine(t)
	if err := c.flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	data, err := strictyaml.Write(c.document(onlySet))
	if err != nil {
		t.Fatal(err)
	}
	return c, string(data)
}

func arguments(flag string, values []string) []string {
	var args []string
	for _, value := range values {
		args = append(args, "--"+flag+"="+value)
	}
	return args
}

func TestFlagsToFileToFlagsIsLossless(t *testing.T) {
	for _, f := range newCommandLine(t).fields() {
		values, ok := samples[f.flag.Value.Type()]
		if !ok {
			t.Errorf("--%s: there are no samples of %s", f.flag.Name, f.flag.Value.Type())
		}
		for _, value := range values {
			for _, onlySet := range []bool{false, true} {
				args := arguments(f.flag.Name, value)
				before, file := written(t, onlySet, args...)
				after, err := withFile(t, file)
				if err != nil {
					t.Fatalf("%v: %v in\n%s", args, err, file)
				}
				if diff := cmp.Diff(set(before), set(after)); diff != "" {
					t.Errorf("%v (-flags +file):\n%s\n%s", args, diff, file)
				}
				if a, b := before.flag(f.flag.Name).Value.String(), after.flag(f.flag.Name).Value.String(); a != b && !strings.Contains(f.flag.Name, "gates") {
					t.Errorf("%v: %q by flags, %q by the file", args, a, b)
				}
			}
		}
	}
}

func TestAllFlagsAtOnceGoThroughAFile(t *testing.T) {
	var args []string
	for _, f := range newCommandLine(t).fields() {
		for _, value := range samples[f.flag.Value.Type()] {
			if fmt.Sprint(value) != "["+f.flag.DefValue+"]" {
				args = append(args, arguments(f.flag.Name, value)...)
				break
			}
		}
	}
	before, file := written(t, true, args...)
	if n := strings.Count(file, "\n"); n < 150 {
		t.Fatalf("the file has only %d lines", n)
	}
	after, err := withFile(t, file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(set(before), set(after)); diff != "" {
		t.Errorf("(-flags +file):\n%s", diff)
	}
}

func TestTheCommandLineWinsOverTheFile(t *testing.T) {
	for _, f := range newCommandLine(t).fields() {
		values := samples[f.flag.Value.Type()]
		inFile, given := arguments(f.flag.Name, values[0]), arguments(f.flag.Name, values[len(values)-1])
		_, file := written(t, true, inFile...)
		want, _ := written(t, true, given...)
		got, err := withFile(t, file, given...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(set(want), set(got)); diff != "" {
			t.Errorf("%v over %v in the file (-want +got):\n%s", given, inFile, diff)
		}
		if overridden, _ := got.FromConfigFile(); len(overridden) != 1 || overridden[0] != f.path+" (--"+f.flag.Name+")" {
			t.Errorf("%v: overridden are %v", given, overridden)
		}
	}
}

func TestADeprecatedFieldIsNoticed(t *testing.T) {
	c, err := withFile(t, head+"kubeCloudShared:\n  nodeSyncPeriod: 5s\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, notices := c.FromConfigFile(); len(notices) != 1 || !strings.HasPrefix(notices[0], "kcm.yaml:4: kubeCloudShared.nodeSyncPeriod (--node-sync-period) is deprecated, ") {
		t.Errorf("notices: %q", notices)
	}
	if _, file := written(t, false); strings.Contains(file, "nodeSyncPeriod") {
		t.Error("a deprecated field is written that nobody has set")
	}
}

func TestAFileThatIsNotThereIsUnreadable(t *testing.T) {
	c := newCommandLine(t)
	c.ConfigFile = "/nonexistent.yaml"
	err := c.ReadConfigFile()
	if !errors.Is(err, ErrUnreadable) || err.Error() != "--config=/nonexistent.yaml: open /nonexistent.yaml: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

func TestTheFileIsWritten(t *testing.T) {
	c, want := written(t, false, "--concurrent-gc-syncs=7")
	c.WriteConfigTo = t.TempDir() + "/kcm.yaml"
	if err := c.WriteConfigFile(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(c.WriteConfigTo); err != nil || string(got) != want || !strings.HasPrefix(want, head) {
		t.Errorf("%v, written:\n%s", err, got)
	}
	c.WriteConfigTo = "/nonexistent/kcm.yaml"
	if err := c.WriteConfigFile(); err == nil || !strings.HasPrefix(err.Error(), "--write-config-to=/nonexistent/kcm.yaml: open ") {
		t.Errorf("got %v", err)
	}
}
