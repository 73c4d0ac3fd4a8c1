package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const program = "kube-controller-manager"

func read(t *testing.T) (root string, pages []page) {
	t.Helper()
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if pages, err = readPages(root); err != nil {
		t.Fatal(err)
	}
	return root, pages
}

func TestEachShellBlockSaysHowItIsTested(t *testing.T) {
	_, pages := read(t)
	for _, page := range pages {
		for i, block := range page.Blocks {
			switch {
			case block.Shell() && !slices.Contains([]string{run, node, files, targets}, block.How):
				t.Errorf("%s:%d: a block of %s says %q; want %s, %s, %s or %s", page.Name, block.Line, block.Language, block.How, run, node, files, targets)
			case block.How == output && (i == 0 || !slices.Contains([]string{run, node, files}, page.Blocks[i-1].How)):
				t.Errorf("%s:%d: output of no block that runs", page.Name, block.Line)
			case block.How == targets && slices.ContainsFunc(block.Commands(), func(command string) bool { return !makeTarget.MatchString(command) }):
				t.Errorf("%s:%d: it runs nowhere, and has more than targets of make", page.Name, block.Line)
			}
		}
	}
}

// foreign are flags of other programs that the pages name in their text.
var foreign = []string{"patches", "disable-controller-manager", "disable-components", "as",
	"certificate-authority", "insecure-skip-tls-verify", "lease", "pod", "port", "server", "token"} // of kubectl-kcm

var (
	flagName   = regexp.MustCompile(`^--([a-z][a-z0-9-]*)`)
	inlineFlag = regexp.MustCompile("`--([a-z][a-z0-9-]*)[^`]*`")
	inTree     = regexp.MustCompile(`(?:^|[\s'"=(,])((?:build|cmd|docs|hack|pkg|staging|test)/[A-Za-z0-9_./-]+)`)
	makeTarget = regexp.MustCompile(`(?m)^make (?:[A-Z_]+=\S+ )*([a-z0-9-]+)`)
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// TestWhatPagesNameExists looks at flags, files, make targets and links.
func TestWhatPagesNameExists(t *testing.T) {
	root, pages := read(t)
	known := flagsOf(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string][]string{}
	for _, page := range pages {
		for _, block := range page.Blocks {
			for _, flag := range flagsIn(block) {
				if !slices.Contains(known, flag) {
					t.Errorf("%s:%d: %s has no flag --%s", page.Name, block.Line, program, flag)
				}
			}
			for _, command := range block.Commands() {
				if target := makeTarget.FindStringSubmatch(command); block.Shell() && target != nil && !strings.Contains(string(makefile), "\n"+target[1]+":") {
					t.Errorf("%s:%d: there is no make target %s", page.Name, block.Line, target[1])
				}
			}
			if block.Shell() {
				filesIn(t, root, page.Name, block.Text)
			}
		}
		prose := page.prose()
		for _, flag := range inlineFlag.FindAllStringSubmatch(prose, -1) {
			if family := strings.HasSuffix(flag[1], "-"); !family && !slices.Contains(known, flag[1]) && !slices.Contains(foreign, flag[1]) && page.Name != "CONTRIBUTING.md" {
				t.Errorf("%s: %s has no flag --%s", page.Name, program, flag[1])
			}
		}
		for _, to := range link.FindAllStringSubmatch(prose, -1) {
			linked(t, root, page.Name, to[1], anchors)
		}
	}
}

func filesIn(t *testing.T, root, page, text string) {
	for _, found := range inTree.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(root, strings.TrimRight(found[1], "."))); err != nil {
			t.Errorf("%s: %v", page, err)
		}
	}
}

// linked fails for a link within the repository that leads nowhere.
func linked(t *testing.T, root, from, to string, anchors map[string][]string) {
	if strings.Contains(to, "://") {
		return
	}
	file, anchor, _ := strings.Cut(to, "#")
	target := filepath.Join(root, from)
	if file != "" {
		target = filepath.Join(root, filepath.Dir(from), file)
	}
	content, err := os.ReadFile(target)
	if info, statErr := os.Stat(target); statErr == nil && info.IsDir() {
		return
	}
	if err != nil {
		t.Errorf("%s: a link to %s: %v", from, to, err)
		return
	}
	if _, done := anchors[target]; !done {
		anchors[target] = parse(target, string(content)).anchors()
	}
	if anchor != "" && !slices.Contains(anchors[target], anchor) {
		t.Errorf("%s: a link to %s: no such heading", from, to)
	}
}

// flagsIn are the flags that a block gives to our program.
func flagsIn(block block) []string {
	var flags []string
	for _, command := range append(block.Commands(), strings.Split(strings.ReplaceAll(block.Text, "\\\n", " "), "\n")...) {
		ours := false
		for _, word := range strings.Fields(strings.NewReplacer("|", " | ", ";", " ; ", "ExecStart=", " ").Replace(command)) {
			word = strings.Trim(word, `'"`)
			if name := flagName.FindStringSubmatch(word); ours && name != nil {
				flags = append(flags, name[1])
			}
			switch {
			case word == "|" || word == ";" || word == "&&":
				ours = false
			case filepath.Base(word) == program && (block.Shell() || block.Language == "ini"):
				ours = true
			}
		}
	}
	return flags
}

// flagsOf are the flags that our program explains.
func flagsOf(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, args := range [][]string{{"--help"}, {"plan-split", "--help"}} {
		help, err := exec.CommandContext(t.Context(), harness.BuiltBinary(t), args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z0-9-]+)`).FindAllStringSubmatch(string(help), -1) {
			all = append(all, found[1])
		}
	}
	if len(all) < 100 {
		t.Fatalf("--help names %d flags", len(all))
	}
	return all
}

// TestManifestsCanBeRead reads the blocks of YAML, and all that is in build. What is of a
// kind of Kubernetes has no field that the kind does not have.
func TestManifestsCanBeRead(t *testing.T) {
	root, pages := read(t)
	read := 0
	for _, page := range pages {
		for _, block := range page.Blocks {
			if block.Language == "yaml" {
				read += manifests(t, page.Name, block.Text)
			}
		}
	}
	err := filepath.WalkDir(filepath.Join(root, "build"), func(name string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(name)
		if err == nil {
			read += manifests(t, name, string(content))
		}
		return err
	})
	if err != nil || read == 0 {
		t.Errorf("read %d manifests of Kubernetes, %v", read, err)
	}
}

var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// manifests returns how many of them are of a kind of Kubernetes.
func manifests(t *testing.T, name, text string) (known int) {
	for _, document := range regexp.MustCompile(`(?m)^---\s*$`).Split(text, -1) {
		head := struct{ APIVersion, Kind string }{}
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if kind := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind); !scheme.Scheme.Recognizes(kind) {
			continue
		}
		if _, err := runtime.Decode(strict, []byte(document)); err != nil {
			t.Errorf("%s: %s: %v", name, head.Kind, err)
		}
		known++
	}
	return known
}
