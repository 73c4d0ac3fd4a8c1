package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

// mutant is a change of one operator.
type mutant struct {
	file, function, kind, code string
	line                       int
	status                     string
}

// arithmetic, bounds and negations say what an operator becomes.
var (
	arithmetic = map[token.Token]token.Token{token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL}
	bounds     = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}
	equalities = map[token.Token]bool{token.EQL: true, token.NEQ: true}
)

// changer writes a file anew, with a switch at each operator. Operands stay where they
// are, once each, so the text goes from source to out from the left to the right.
type changer struct {
	set     *token.FileSet
	info    *types.Info
	own     *types.Package
	source  []byte
	name    string
	decl    ast.Decl
	out     bytes.Buffer
	at      int
	imports map[string]string
	mutants *[]mutant // those of all files of the package; the number of one is its place, from 1
}

// change gives the file as it is with all switches.
func (c *changer) change(file *ast.File) []byte {
	c.imports = map[string]string{}
	head := c.offset(file.Name.End())
	c.at = head
	for _, c.decl = range file.Decls {
		ast.Walk(c, c.decl)
	}
	c.out.Write(c.source[c.at:])
	var whole bytes.Buffer
	whole.Write(c.source[:head])
	for path, name := range c.imports {
		fmt.Fprintf(&whole, "; import %s %q", name, path)
	}
	whole.Write(c.out.Bytes())
	return whole.Bytes()
}

// Visit leaves constants, and what has to be one, as they are.
func (c *changer) Visit(node ast.Node) ast.Visitor {
	switch node := node.(type) {
	case *ast.GenDecl:
		if node.Tok == token.CONST || node.Tok == token.IMPORT {
			return nil
		}
	case *ast.ArrayType:
		ast.Walk(c, node.Elt)
		return nil
	case *ast.BinaryExpr:
		return c.binary(node)
	case *ast.UnaryExpr:
		if node.Op == token.SUB {
			t := c.typeOf(node)
			c.put(node.Pos(), "func() %s { a := %s(", t, t)
			c.at = c.offset(node.X.Pos())
			ast.Walk(c, node.X)
			c.put(node.End(), "); if mutated(%d) { return a }; return -a }()", c.add("ARITHMETIC_BASE", node.OpPos))
			return nil
		}
	case *ast.IncDecStmt:
		ast.Walk(c, node.X)
		t, sign := c.typeOf(node.X), node.Tok.String()[:1]
		c.put(node.TokPos, " %s= func() %s { one := %s(1); if mutated(%d) { return -one }; return one }()", sign, t, t, c.add("INCREMENT_DECREMENT", node.TokPos))
		c.at = c.offset(node.End())
		return nil
	}
	return c
}

func (c *changer) binary(node *ast.BinaryExpr) ast.Visitor {
	between := func(text string, values ...any) {
		ast.Walk(c, node.X)
		c.put(node.X.End(), text, values...)
		c.at = c.offset(node.Y.Pos())
		ast.Walk(c, node.Y)
	}
	switch op := node.Op; {
	case op == token.LAND || op == token.LOR:
		n, same := c.add("INVERT_LOGICAL", node.OpPos), "=="
		if op == token.LOR {
			same = "!="
		}
		c.put(node.Pos(), "func() %s { if a := (", c.typeOf(node))
		between("); a %s mutated(%d) { return a }; return (", same, n)
		c.put(node.End(), ") }()")
	case equalities[op]:
		n := c.add("CONDITIONALS_NEGATION", node.OpPos)
		c.put(node.Pos(), "((")
		between(" %v ", op)
		c.put(node.End(), ") != mutated(%d))", n)
	case bounds[op] != 0:
		bound, negation := c.add("CONDITIONALS_BOUNDARY", node.OpPos), c.add("CONDITIONALS_NEGATION", node.OpPos)
		operand := c.typeOf(node.X)
		c.put(node.Pos(), "func() %s { a, b := %s(", c.typeOf(node), operand)
		between("), %s(", operand)
		c.put(node.End(), "); if mutated(%d) { return a %v b }; return (a %v b) != mutated(%d) }()", bound, bounds[op], op, negation)
	case arithmetic[op] != 0 && c.isNumber(node):
		n := c.add("ARITHMETIC_BASE", node.OpPos)
		t := c.typeOf(node)
		c.put(node.Pos(), "func() %s { a, b := %s(", t, t)
		between("), %s(", t)
		c.put(node.End(), "); if mutated(%d) { return a %v b }; return a %v b }()", n, arithmetic[op], op)
	default:
		return c
	}
	return nil
}

// put copies the source up to a place, and then a text.
func (c *changer) put(until token.Pos, text string, values ...any) {
	end := c.offset(until)
	c.out.Write(c.source[c.at:end])
	c.at = end
	fmt.Fprintf(&c.out, text, values...)
}

func (c *changer) offset(pos token.Pos) int { return c.set.Position(pos).Offset }

func (c *changer) add(kind string, pos token.Pos) int {
	at := c.set.Position(pos)
	line := strings.Split(string(c.source), "\n")[at.Line-1]
	*c.mutants = append(*c.mutants, mutant{
		file: c.name, function: function(c.decl), kind: kind, code: marked(line, at.Column), line: at.Line, status: "NOT COVERED",
	})
	return len(*c.mutants)
}

func (c *changer) isNumber(node ast.Expr) bool {
	basic, ok := c.info.TypeOf(node).Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsNumeric != 0
}

// typeOf is the name of a type, its package imported under a name that nothing has.
func (c *changer) typeOf(node ast.Expr) string {
	return types.TypeString(types.Default(c.info.TypeOf(node)), func(p *types.Package) string {
		if p == c.own {
			return ""
		}
		name := "mutated_" + strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(p.Path())
		c.imports[p.Path()] = name
		return name
	})
}

// function names a declaration.
func function(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok {
		return "-"
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

// wiring is what reads caches, calls the API, watches, counts or serves: the stories cover
// it. No other file than these is left out.
func wiring(file string) bool {
	switch strings.TrimSuffix(filepath.Base(file), ".go") {
	case "adapter", "api", "apply", "controller", "debug", "dot", "events", "load", "metrics", "observe", "reads", "view", "watch", "writes",
		"doc", "race", "norace":
		return true
	}
	return strings.Contains(file, "zz_generated")
}
