package splitplan

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

const (
	program = "kube-controller-manager"
	// logFileFlag is of go-runner, which images start the program through.
	logFileFlag = "log-file"
	// The original's, unless its command line says otherwise.
	defaultLease = program
	defaultPort  = 10257
)

// DefaultLine is how the original runs without flags.
func DefaultLine() Line {
	return Line{Controllers: []string{"*"}, Lease: defaultLease, Port: defaultPort}
}

// Manifest is the static pod of the original.
type Manifest struct {
	pod *corev1.Pod
	// container is the index of the one that runs the program.
	container int
	line      Line
}

// Read reads a manifest, and returns all that keeps it from being split. takesValue reports
// whether the value of a flag is the next word where "=" does not join it to the flag.
func Read(content []byte, takesValue func(flag string) bool) (*Manifest, error) {
	m := &Manifest{pod: &corev1.Pod{}, container: -1}
	if err := yaml.UnmarshalStrict(content, m.pod); err != nil {
		return nil, err
	}
	if m.pod.Kind != "Pod" {
		return nil, fmt.Errorf("it is a %q and no Pod", m.pod.Kind)
	}
	for i := range m.pod.Spec.Containers {
		for _, word := range words(&m.pod.Spec.Containers[i]) {
			if !strings.HasPrefix(word, "-") && path.Base(word) == program && m.container < 0 {
				m.container = i
			}
		}
	}
	if m.container < 0 {
		return nil, fmt.Errorf("no container runs %s with flags of its own; a command line of a shell cannot be changed", program)
	}
	if open := join(&m.pod.Spec.Containers[m.container], takesValue); open != "" {
		return nil, fmt.Errorf("--%s, at the end of the command line, has no value", open)
	}
	return m, m.read()
}

// join makes one word of each flag and its value, which all that reads and changes the
// command line goes by. It returns the flag that has no value, if there is one. What stands
// before the program is of a wrapper, which has a log file.
func join(c *corev1.Container, takesValue func(flag string) bool) (open string) {
	takes := func(flag string) bool { return flag == logFileFlag }
	var waits *string
	inProgram := false
	for _, line := range []*[]string{&c.Command, &c.Args} {
		var joined []string
		for _, word := range *line {
			if waits != nil {
				*waits += "=" + word
				waits = nil
				continue
			}
			flag, isFlag := strings.CutPrefix(word, "--")
			if isFlag && inProgram { // which takes underscores too
				name, value, has := strings.Cut(flag, "=")
				if flag = strings.ReplaceAll(name, "_", "-"); has {
					flag += "=" + value
				}
				word = "--" + flag
			}
			joined = append(joined, word)
			switch {
			case isFlag && takes(flag):
				waits = &joined[len(joined)-1]
			case !strings.HasPrefix(word, "-") && path.Base(word) == program:
				takes, inProgram = takesValue, true
			}
		}
		*line = joined
	}
	if waits != nil {
		return strings.TrimPrefix(*waits, "--")
	}
	return ""
}

// read takes from the command line what a split depends on.
func (m *Manifest) read() error {
	var problems []error
	m.line = DefaultLine()
	c := &m.pod.Spec.Containers[m.container]
	if values := valuesOf(c, "controllers"); len(values) > 0 {
		m.line.Controllers = nil
		for _, value := range values {
			m.line.Controllers = append(m.line.Controllers, strings.FieldsFunc(value, func(r rune) bool { return r == ',' })...)
		}
	}
	if values := valuesOf(c, "leader-elect-resource-name"); len(values) > 0 {
		m.line.Lease = values[len(values)-1]
	}
	if values := valuesOf(c, "secure-port"); len(values) > 0 {
		port, err := strconv.Atoi(values[len(values)-1])
		if err != nil {
			problems = append(problems, fmt.Errorf("--secure-port=%s is not a number", values[len(values)-1]))
		}
		m.line.Port = port
	}
	return errors.Join(problems...)
}

// Line is how the original of the manifest runs.
func (m *Manifest) Line() Line { return m.line }

// Theirs is the pod of the original under a plan, which leaves it something to run.
func (m *Manifest) Theirs(p Plan) *corev1.Pod {
	pod := m.pod.DeepCopy()
	c := &pod.Spec.Containers[m.container]
	set(c, "controllers", strings.Join(p.Theirs.Controllers, ","))
	if p.Theirs.NoKey {
		drop(c, keyFlag)
	}
	return pod
}

// Ours is the pod of ours under a plan: that of the original, under the name of its lease.
func (m *Manifest) Ours(p Plan, image string) *corev1.Pod {
	pod := m.pod.DeepCopy()
	c := &pod.Spec.Containers[m.container]
	pod.Name, c.Image = p.Ours.Lease, image
	if c.Name == program {
		c.Name = p.Ours.Lease
	}
	for key, value := range pod.Labels {
		if value == program {
			pod.Labels[key] = p.Ours.Lease
		}
	}
	for _, flag := range p.Flags() {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		set(c, name, value)
	}
	// The lease of a leader migration would be shared with the original.
	drop(c, "enable-leader-migration")
	drop(c, "leader-migration-config")
	if p.Ours.NoKey {
		drop(c, keyFlag)
	}
	listen(c, m.line.Port, p.Ours.Port)
	return pod
}

// Warnings are what the manifest adds to those of a plan.
func (m *Manifest) Warnings() []string {
	var warnings []string
	c := &m.pod.Spec.Containers[m.container]
	for _, file := range valuesOf(c, logFileFlag) {
		warnings = append(warnings, fmt.Sprintf("--log-file=%s is in both manifests. Give ours another file, and its volume too.", file))
	}
	for _, value := range valuesOf(c, "enable-leader-migration") {
		if on, err := strconv.ParseBool(value); err == nil && on {
			warnings = append(warnings, "The original migrates leaders. Ours does not, and must not: the two would share the lease of the migration.")
		}
	}
	return warnings
}

// listen changes the port that the container's ports and probes name.
func listen(c *corev1.Container, from, to int) {
	for i := range c.Ports {
		for _, port := range []*int32{&c.Ports[i].ContainerPort, &c.Ports[i].HostPort} {
			if int(*port) == from {
				*port = int32(to)
			}
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil && probe.HTTPGet != nil && probe.HTTPGet.Port == intstr.FromInt(from) {
			probe.HTTPGet.Port = intstr.FromInt(to)
		}
	}
}

// words are the command line of a container.
func words(c *corev1.Container) []string {
	return append(append([]string{}, c.Command...), c.Args...)
}

// valuesOf are the values that a flag is given; one without a value is true.
func valuesOf(c *corev1.Container, flag string) []string {
	var values []string
	for _, word := range words(c) {
		if word == "--"+flag {
			values = append(values, "true")
		} else if value, ok := strings.CutPrefix(word, "--"+flag+"="); ok {
			values = append(values, value)
		}
	}
	return values
}

// set gives a flag one value: where it stands first, or else at the end.
func set(c *corev1.Container, flag, value string) {
	done := false
	for _, line := range []*[]string{&c.Command, &c.Args} {
		var kept []string
		for _, word := range *line {
			if !is(word, flag) {
				kept = append(kept, word)
			} else if !done {
				done, kept = true, append(kept, "--"+flag+"="+value)
			}
		}
		*line = kept
	}
	if line := &c.Command; !done {
		if len(c.Args) > 0 {
			line = &c.Args
		}
		*line = append(*line, "--"+flag+"="+value)
	}
}

// drop takes a flag out.
func drop(c *corev1.Container, flag string) {
	for _, line := range []*[]string{&c.Command, &c.Args} {
		var kept []string
		for _, word := range *line {
			if !is(word, flag) {
				kept = append(kept, word)
			}
		}
		*line = kept
	}
}

func is(word, flag string) bool { return word == "--"+flag || strings.HasPrefix(word, "--"+flag+"=") }
