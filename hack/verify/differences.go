package main

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	differencesFile = "docs/differences.md"
	storiesFolder   = "test/scenarios"
)

var (
	quoted    = regexp.MustCompile("`([^`]+)`")
	namedTest = regexp.MustCompile(`^(\w+)\.(Test\w+)(?:/(.+))?$`)
)

// tests is what the test files of the packages of one name have.
type tests struct {
	functions []string
	texts     []string // a subtest is named by one of them
}

// differences holds every row of the list of differences to a test that exists.
func differences(sources []source, found func(string, ...any)) {
	content, err := os.ReadFile(differencesFile)
	if err != nil {
		found("%v", err)
		return
	}
	known := testsByPackage(sources)
	columns, n := 0, 0
	for line := range strings.Lines(string(content)) {
		n++
		row, is := strings.CutPrefix(strings.TrimSpace(line), "|")
		if !is {
			columns = 0
			continue
		}
		cells := strings.Split(strings.TrimSuffix(row, "|"), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		switch names := quoted.FindAllStringSubmatch(last, -1); {
		case columns == 0:
			if columns = len(cells); last != "test" {
				found("%s:%d: the last column of a table is %q; it names the test", differencesFile, n, last)
			}
		case strings.Trim(row, "|- ") == "": // the line below the head
		case len(cells) != columns:
			found("%s:%d: %d columns in a table of %d", differencesFile, n, len(cells), columns)
		case len(names) == 0 && last != "none":
			found("%s:%d: names no test; name one, or say none", differencesFile, n)
		default:
			for _, name := range names {
				if !exists(name[1], known) {
					found("%s:%d: there is no test %s", differencesFile, n, name[1])
				}
			}
		}
	}
}

// exists reports whether a name is that of a test function, of a part of one, or of a story.
func exists(name string, known map[string]*tests) bool {
	m := namedTest.FindStringSubmatch(name)
	if m == nil {
		_, err := os.Stat(path.Join(storiesFolder, name+".txtar"))
		return err == nil
	}
	of, ok := known[m[1]]
	return ok && slices.Contains(of.functions, m[2]) && (m[3] == "" || slices.Contains(of.texts, spoken(m[3])))
}

// spoken undoes what a test run does to the name of a subtest.
func spoken(name string) string { return strings.ReplaceAll(name, "_", " ") }

func testsByPackage(sources []source) map[string]*tests {
	known := map[string]*tests{}
	for _, s := range sources {
		if !strings.HasSuffix(s.name, "_test.go") || strings.Contains(s.name, "testdata/") {
			continue
		}
		name := strings.TrimSuffix(s.file.Name.Name, "_test")
		if known[name] == nil {
			known[name] = &tests{}
		}
		known[name].add(s.file)
	}
	return known
}

func (t *tests) add(file *ast.File) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			if node.Recv == nil {
				t.functions = append(t.functions, node.Name.Name)
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING {
				t.texts = append(t.texts, spoken(text))
			}
		}
		return true
	})
}
