// Command mutants says what gremlins found, in terms that outlive a change of line
// numbers. With the arguments package and file it reads the result of one package from
// the file and prints its mutants; without, it reads what is kept of all packages and
// prints the table and the mutants that live. It exits 1 if too many of them do.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	kept      = "_output/mutate"
	packages  = "hack/mutate/packages.txt"
	survivors = "hack/mutate/survivors.tsv"
)

func main() {
	var err error
	if len(os.Args) == 3 {
		err = convert(os.Stdout, os.Args[1], os.Args[2])
	} else {
		err = report(os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// result is what of the file of gremlins is used.
type result struct {
	Files []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Type, Status string
			Line, Column int
		} `json:"mutations"`
	} `json:"files"`
}

// convert prints a line for each mutant of a package.
func convert(out io.Writer, pkg, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var found result
	if err := json.Unmarshal(content, &found); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var lines []string
	for _, f := range found.Files {
		name := filepath.Join(pkg, f.Name)
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		code := bytes.Split(source, []byte("\n"))
		for _, m := range f.Mutations {
			key := strings.Join([]string{pkg, f.Name, function(set, parsed, m.Line), m.Type, marked(string(code[m.Line-1]), m.Column)}, "\t")
			lines = append(lines, fmt.Sprintf("%s\t%s\t%d", key, m.Status, m.Line))
		}
	}
	slices.Sort(lines)
	_, err = fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// function names the declaration that holds a line.
func function(set *token.FileSet, file *ast.File, line int) string {
	for _, decl := range file.Decls {
		if set.Position(decl.Pos()).Line > line || set.Position(decl.End()).Line < line {
			continue
		}
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			break
		}
		if f.Recv == nil || len(f.Recv.List) == 0 {
			return f.Name.Name
		}
		receiver := f.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		if generic, ok := receiver.(*ast.IndexExpr); ok {
			receiver = generic.X
		}
		if generic, ok := receiver.(*ast.IndexListExpr); ok {
			receiver = generic.X
		}
		return fmt.Sprintf("%v.%s", receiver, f.Name.Name)
	}
	return "-"
}

// marked is a line of code without its indent, the operator at the column in guillemets.
func marked(line string, column int) string {
	before, after := line[:column-1], line[column-1:]
	size := 1
	for _, operator := range []string{"==", "!=", "<=", ">=", "&&", "||", "++", "--"} {
		if strings.HasPrefix(after, operator) {
			size = 2
		}
	}
	return strings.Join(strings.Fields(before+"«"+after[:size]+"»"+after[size:]), " ")
}
