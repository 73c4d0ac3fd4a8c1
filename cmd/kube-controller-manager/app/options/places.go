package options

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kube-kcm/kube-controller-manager/pkg/strictyaml"
)

// place is where a flag stands in the configuration file.
type place struct {
	flag, path string
	field      strictyaml.Field
}

// Located names file, line and field in the problems of what the file has set.
func (o *KubeControllerManagerOptions) Located(err error) error {
	if err == nil || len(o.file.places) == 0 {
		return err
	}
	aggregate, ok := err.(utilerrors.Aggregate) // a wrapped one is one problem
	if !ok {
		return o.located(err)
	}
	var errs []error
	for _, each := range utilerrors.Flatten(aggregate).Errors() {
		errs = append(errs, o.located(each))
	}
	return utilerrors.NewAggregate(errs)
}

func (o *KubeControllerManagerOptions) located(err error) error {
	message := err.Error()
	if strings.HasPrefix(message, o.ConfigFile+":") {
		return err // the file's own
	}
	for _, finds := range []func(place, string) bool{named, begun, worded, quoted} {
		at := slices.IndexFunc(o.file.places, func(p place) bool { return finds(p, message) })
		if at >= 0 {
			p := o.file.places[at]
			return fmt.Errorf("%s:%d: %s: %w", o.ConfigFile, p.line(message), p.path, err)
		}
	}
	return err
}

// words are what may be the name of a flag.
var words = regexp.MustCompile(`(?:--)?[a-z][a-z0-9]*(?:-[a-z0-9]+)*`)

// named reports whether the message names the flag; one without a hyphen counts only
// behind two.
func named(p place, message string) bool {
	for _, word := range words.FindAllString(message, -1) {
		if word == "--"+p.flag || word == p.flag && strings.Contains(word, "-") {
			return true
		}
	}
	return false
}

// begun reports whether the message has what the flag begins with, as for a pair of flags.
func begun(p place, message string) bool {
	for _, word := range words.FindAllString(message, -1) {
		word = strings.TrimPrefix(word, "--")
		if strings.Contains(word, "-") && strings.HasPrefix(p.flag, word+"-") {
			return true
		}
	}
	return false
}

// wordings are how libraries speak of flags whose names they do not know.
var wordings = map[string]*regexp.Regexp{
	"feature-gates":                   regexp.MustCompile(`feature gate|component not registered`),
	"emulated-version":                regexp.MustCompile(`^emulation version`),
	"min-compatibility-version":       regexp.MustCompile(`^minCompatibilityVersion`),
	"logging-format":                  regexp.MustCompile(`^format: `),
	"log-flush-frequency":             regexp.MustCompile(`^flushFrequency: `),
	"vmodule":                         regexp.MustCompile(`^vmodule`),
	"log-text-split-stream":           regexp.MustCompile(`^options\.text\.splitStream: `),
	"log-text-info-buffer-size":       regexp.MustCompile(`^options\.text\.infoBufferSize: `),
	"log-json-split-stream":           regexp.MustCompile(`^options\.json\.splitStream: `),
	"log-json-info-buffer-size":       regexp.MustCompile(`^options\.json\.infoBufferSize: `),
	"show-hidden-metrics-for-version": regexp.MustCompile(`^metrics\.showHiddenMetricsForVersion: `),
	"allow-metric-labels":             regexp.MustCompile(`^metrics(\.allowListMapping)?: `),
	"allow-metric-labels-manifest":    regexp.MustCompile(`^metrics\.allowListMappingManifest: `),
}

func worded(p place, message string) bool {
	wording, ok := wordings[p.flag]
	return ok && wording.MatchString(message)
}

// quoted reports whether the message has an item, or the name of one, of the field.
func quoted(p place, message string) bool {
	_, found := p.item(message)
	return found
}

// line is that of the item which the message is about, or else of the field.
func (p place) line(message string) int {
	if line, found := p.item(message); found {
		return line
	}
	return p.field.Line
}

// item returns the line of the item that the message has; with several, that of the field.
func (p place) item(message string) (line int, found bool) {
	var lines []int
	for _, item := range p.field.Value.Items {
		if has(message, item.Text) {
			lines = append(lines, item.Line)
		}
	}
	for _, f := range p.field.Value.Fields {
		if has(message, f.Name) {
			lines = append(lines, f.Line)
		}
	}
	if len(lines) == 1 {
		return lines[0], true
	}
	return p.field.Line, len(lines) > 0
}

// has reports whether the text stands in the message as a word.
func has(message, text string) bool {
	if text == "" {
		return false
	}
	found, err := regexp.MatchString(`(^|[^\w-])`+regexp.QuoteMeta(text)+`($|[^\w-])`, message)
	return err == nil && found
}
