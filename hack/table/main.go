// Command table prints, in Markdown, how each controller is tested and what one
// of its reconciles costs. It counts the tests in the tree below the working
// directory and reads times from the output of go test -bench, a file that is
// its only argument.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed controllers.tsv
var controllers string

// row is a controller, and where its tests are.
type row struct {
	name, pkg, prefix string
	shared, tests     []string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("wanted one argument, the file with the output of go test -bench")
	}
	output, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	rows := parseRows(controllers)
	stories, integration, whole, err := found(rows)
	if err != nil {
		return err
	}
	return write(rows, stories, integration, whole, parseBench(string(output)))
}

func write(rows []row, stories map[string]int, integration, whole []string, costs map[string][]cost) error {
	fmt.Println("# The controllers, their tests, and the cost of a reconcile")
	fmt.Println("\nMade by `make table` (`hack/table`). Unit tests are those of the controller's package, and after the plus sign those of packages" +
		"\nthat it shares. A test in several lines is counted in each. A reconcile is timed among 1,000 and among 10,000 objects of the kind" +
		"\nthat is named, most of which it has nothing to do with; a pass looks at all of them.")
	fmt.Println("\n| controller | user stories | unit tests | integration tests | e2e tests | among 1,000 | among 10,000 | benchmark |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range rows {
		unit, shared, err := r.units()
		if err != nil {
			return err
		}
		c := r.cost(costs)
		fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.name, number(stories[r.name]), unit+shared,
			number(among(r.tests, integration)), number(among(r.tests, whole)), c.small, c.large, c.name)
	}
	return nil
}

func parseRows(text string) []row {
	var rows []row
	for line := range strings.Lines(text) {
		if f := strings.Split(strings.TrimRight(line, "\n"), "\t"); len(f) == 5 && !strings.HasPrefix(line, "#") {
			rows = append(rows, row{f[0], f[1], f[2], strings.Fields(f[3]), strings.Fields(f[4])})
		}
	}
	return rows
}

// units counts the tests of the controller's package and of those that it shares.
func (r row) units() (own, shared string, err error) {
	var tests []string
	if r.pkg != "" {
		if tests, err = testsIn(filepath.Join("pkg/controller", r.pkg)); err != nil {
			return "", "", err
		}
	}
	more := 0
	for _, pkg := range r.shared {
		theirs, err := testsIn(filepath.Join("pkg", pkg))
		if err != nil {
			return "", "", err
		}
		more += len(theirs)
	}
	if more > 0 {
		shared = fmt.Sprintf(" + %d", more)
	}
	return number(len(tests)), shared, nil
}

// found returns the stories of each row, and the tests of the two kinds. It is an error
// if a story, a test or a package belongs to no row.
func found(rows []row) (stories map[string]int, integration, whole []string, err error) {
	stories, err = storiesOf(rows)
	if err != nil {
		return nil, nil, nil, err
	}
	if integration, err = testsIn("test/integration"); err != nil {
		return nil, nil, nil, err
	}
	if whole, err = testsIn("test/e2e"); err != nil {
		return nil, nil, nil, err
	}
	return stories, integration, whole, errors.Join(packagesListed(rows), testsListed(rows, slices.Concat(integration, whole)))
}

// storiesOf counts stories by the longest prefix that a controller has.
func storiesOf(rows []row) (map[string]int, error) {
	files, err := filepath.Glob("test/scenarios/*.txtar")
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	var errs []error
	for _, file := range files {
		var of row
		for _, r := range rows {
			if strings.HasPrefix(filepath.Base(file), r.prefix+"-") && len(r.prefix) > len(of.prefix) {
				of = r
			}
		}
		if count[of.name]++; of.name == "" {
			errs = append(errs, fmt.Errorf("%s: no controller has this prefix", file))
		}
	}
	return count, errors.Join(errs...)
}

// testsIn lists the tests and fuzz tests of a directory.
func testsIn(directory string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && isTest.MatchString(f.Name.Name) && f.Name.Name != "TestMain" {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names, nil
}

var isTest = regexp.MustCompile(`^(Test|Fuzz)[^a-z]`)

func packagesListed(rows []row) error {
	directories, err := filepath.Glob("pkg/controller/*")
	if err != nil {
		return err
	}
	var errs []error
	for _, directory := range directories {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.pkg == filepath.Base(directory) }) {
			errs = append(errs, fmt.Errorf("hack/table/controllers.tsv has no line for %s", directory))
		}
	}
	return errors.Join(errs...)
}

// testsListed holds the list of tests against those that there are.
func testsListed(rows []row, there []string) error {
	var errs []error
	var listed []string
	for _, r := range rows {
		listed = append(listed, r.tests...)
		for _, name := range r.tests {
			if !slices.Contains(there, name) {
				errs = append(errs, fmt.Errorf("hack/table/controllers.tsv: %s: there is no test %s", r.name, name))
			}
		}
	}
	for _, name := range there {
		if !slices.Contains(listed, name) {
			errs = append(errs, fmt.Errorf("hack/table/controllers.tsv: %s is a test of no controller", name))
		}
	}
	return errors.Join(errs...)
}

func among(names, all []string) int {
	n := 0
	for _, name := range names {
		if slices.Contains(all, name) {
			n++
		}
	}
	return n
}

// number leaves out what is none.
func number(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}
