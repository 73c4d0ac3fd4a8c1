// Package docs holds the documents of operators to what they say: their commands run, the
// flags and files that they name exist, and their manifests can be read.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// How a shell block is tested, as its info string says: it runs here, or on a node of
// kubeadm that is made here, or there among the files of a release. A block of make only
// names targets. A block of output after one that runs has what that prints.
const (
	run     = "run"
	node    = "node"
	files   = "files"
	targets = "make"
	output  = "output"
)

var shells = []string{"sh", "bash", "shell", "console"}

// page is a document.
type page struct {
	// Name is its path in the repository.
	Name   string
	Text   string
	Blocks []block
}

// block is a fenced block of a page.
type block struct {
	// Line is where its text begins.
	Line int
	// Language and How are the words of its info string.
	Language, How string
	Text          string
}

// Shell reports whether somebody could type the block.
func (b block) Shell() bool { return slices.Contains(shells, b.Language) }

// Commands are the lines of a shell block, those that go on joined, without prompts and
// comments.
func (b block) Commands() []string {
	var all []string
	text := strings.ReplaceAll(b.Text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if line, _, _ = strings.Cut(line, " #"); strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// readPages reads the documents of operators.
func readPages(root string) ([]page, error) {
	names, err := filepath.Glob(filepath.Join(root, "docs", "operate", "*.md"))
	if err != nil {
		return nil, err
	}
	var pages []page
	for _, name := range append([]string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "SECURITY.md"), filepath.Join(root, "CHANGELOG.md")}, names...) {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		inside, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		pages = append(pages, parse(filepath.ToSlash(inside), string(content)))
	}
	return pages, nil
}

var fence = regexp.MustCompile("^\\s*```(.*)$")

func parse(name, text string) page {
	p := page{Name: name, Text: text}
	var open *block
	n := 0
	for line := range strings.Lines(text) {
		n++
		mark := fence.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case mark == nil && open != nil:
			open.Text += line
		case mark != nil && open == nil:
			language, how, _ := strings.Cut(strings.TrimSpace(mark[1]), " ")
			open = &block{Line: n + 1, Language: language, How: how}
		case mark != nil:
			p.Blocks = append(p.Blocks, *open)
			open = nil
		}
	}
	return p
}

// prose is a page without its blocks.
func (p page) prose() string {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(p.Text) {
		if fence.MatchString(strings.TrimRight(line, "\n")) {
			inside = !inside
		} else if !inside {
			out.WriteString(line)
		}
	}
	return out.String()
}

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// anchors are what a link to a heading of the page has after its #.
func (p page) anchors() []string {
	var all []string
	for line := range strings.Lines(p.prose()) {
		if strings.HasPrefix(line, "#") {
			title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
			all = append(all, strings.ReplaceAll(notInAnchors.ReplaceAllString(title, ""), " ", "-"))
		}
	}
	return all
}
