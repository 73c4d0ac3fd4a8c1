package scenarios

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// lateBy is how long after its sender gave up an early request is carried out.
const lateBy = 300 * time.Millisecond

// proxyOrder is what a proxy line says.
type proxyOrder struct {
	// word is empty, off, used, lag, cut or expire (both of watches), or rule.
	word      string
	resources []string
	late      time.Duration
	rule      harness.Rule
}

// parseProxy reads what follows "proxy".
func parseProxy(line string) (proxyOrder, error) {
	fields := words(line)
	if len(fields) == 0 {
		return proxyOrder{}, nil
	}
	switch fields[0] {
	case "off", "used":
		if len(fields) > 1 {
			return proxyOrder{}, fmt.Errorf("proxy %s takes nothing, not %q", fields[0], strings.Join(fields[1:], " "))
		}
		return proxyOrder{word: fields[0]}, nil
	case "lag":
		if len(fields) != 3 {
			return proxyOrder{}, fmt.Errorf("proxy lag takes a duration and RES[,RES...] or *, not %q", strings.Join(fields[1:], " "))
		}
		late, err := parsePause(fields[1])
		if err != nil {
			return proxyOrder{}, fmt.Errorf("proxy lag: %w", err)
		}
		resources, err := parseResources(fields[2])
		return proxyOrder{word: "lag", resources: resources, late: late}, err
	case "watches":
		if len(fields) != 3 || fields[1] != "cut" && fields[1] != "expire" {
			return proxyOrder{}, fmt.Errorf("proxy watches takes cut or expire, and RES[,RES...] or *, not %q", strings.Join(fields[1:], " "))
		}
		resources, err := parseResources(fields[2])
		return proxyOrder{word: fields[1], resources: resources}, err
	}
	rule, err := parseRule(fields)
	return proxyOrder{word: "rule", rule: rule}, err
}

// parseRule reads FAULT [ARGUMENT] VERB RES[,RES...] [times=N] [share=P%].
func parseRule(fields []string) (harness.Rule, error) {
	var rule harness.Rule
	fault, rest := fields[0], fields[1:]
	argument := ""
	if slices.Contains([]string{"refuse", "delay", "stall", "lose", "absent"}, fault) && len(rest) > 0 {
		argument, rest = rest[0], rest[1:]
	}
	var err error
	if rule.Fault, err = parseFault(fault, argument); err != nil {
		return rule, err
	}
	if fault == "absent" {
		rest = append([]string{"list"}, rest...)
	}
	if len(rest) < 2 || !slices.Contains(harness.Verbs, rest[0]) {
		return rule, fmt.Errorf("proxy %s wants a verb (%s) and RES[,RES...] or *, not %q", fault, strings.Join(harness.Verbs, ", "), strings.Join(rest, " "))
	}
	rule.Verb = rest[0]
	if rule.Resources, err = parseResources(rest[1]); err != nil {
		return rule, err
	}
	for _, option := range rest[2:] {
		if err := parseRuleOption(&rule, option); err != nil {
			return rule, err
		}
	}
	return rule, nil
}

func parseFault(word, argument string) (harness.Fault, error) {
	var fault harness.Fault
	var err error
	switch word {
	case "refuse":
		fault.Refuse, err = parseCode(argument, 400, 599)
	case "absent":
		fault.Absent, err = parseCode(argument, http.StatusNotFound, http.StatusMethodNotAllowed)
	case "delay":
		fault.Delay, err = parsePause(argument)
	case "stall":
		fault.Stall, err = parsePause(argument)
	case "lose":
		if fault.Lose = harness.LoseByReset; argument != "reset" {
			fault.Lose, err = parseCode(argument, 400, 599)
		}
	case "cut":
		fault.Cut = true
	case "early":
		fault.Early, fault.Delay = true, lateBy
	default:
		return fault, fmt.Errorf("proxy does not know %q", word)
	}
	if err != nil {
		return fault, fmt.Errorf("proxy %s: %w", word, err)
	}
	return fault, nil
}

func parseCode(text string, least, most int) (int, error) {
	code, err := strconv.Atoi(text)
	if err != nil || code < least || code > most {
		return 0, fmt.Errorf("%q is no code from %d to %d", text, least, most)
	}
	return code, nil
}

func parsePause(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > time.Minute {
		return 0, fmt.Errorf("%q is no duration up to a minute, such as 300ms", text)
	}
	return d, nil
}

func parseResources(text string) ([]string, error) {
	resources := strings.Split(text, ",")
	for _, resource := range resources {
		if plural, sub, found := strings.Cut(resource, "/"); plural == "" || found && sub == "" || strings.Contains(sub, "/") || strings.Contains(plural, "=") {
			return nil, fmt.Errorf("%q is no resource such as pods, jobs/status, deployments.apps or *", resource)
		}
	}
	return resources, nil
}

func parseRuleOption(rule *harness.Rule, option string) error {
	key, value, _ := strings.Cut(option, "=")
	n, err := strconv.Atoi(strings.TrimSuffix(value, "%"))
	switch {
	case key == "times" && err == nil && n > 0 && !strings.HasSuffix(value, "%"):
		rule.Times = n
	case key == "share" && err == nil && n > 0 && n <= 100 && strings.HasSuffix(value, "%"):
		rule.Share = n
	default:
		return fmt.Errorf("proxy takes times=N and share=P%%, not %q", option)
	}
	return nil
}

func wantProxy(s Step) error {
	_, err := parseProxy(s.Rest)
	return err
}

// proxy tells the proxy before the API server what goes wrong from now on.
func (r *run) proxy(ctx context.Context, step Step) error {
	order, err := parseProxy(step.Rest)
	if err != nil {
		return err
	}
	if order.word == "" {
		r.setup.Proxy = true
		return r.suite.startProxy()
	}
	proxy := r.suite.proxy
	if proxy == nil || !r.setup.Proxy && !r.story.Setup.Proxy {
		return errors.New("no proxy stands before this manager")
	}
	switch order.word {
	case "off":
		r.endProxy()
	case "used":
		return r.until(ctx, step.Within, func() (bool, string, error) {
			rule, unused := r.rulesOfProxy().Unused()
			return !unused, fmt.Sprintf("not met yet, or not often enough: %s %s", rule.Verb, strings.Join(rule.Resources, ",")), nil
		})
	case "lag":
		proxy.Lag(order.resources, order.late)
	case "cut", "expire":
		end := proxy.CutWatches
		if order.word == "expire" {
			end = proxy.ExpireWatches
		}
		return r.until(ctx, step.Within, func() (bool, string, error) {
			return end(order.resources) > 0, "no such watch is running", nil
		})
	default:
		r.rulesOfProxy().Add(order.rule)
		proxy.Disturb(r.rules.Fault)
	}
	return nil
}

func (r *run) rulesOfProxy() *harness.Rules {
	if r.rules == nil {
		r.rules = harness.NewRules(r.namespace)
	}
	return r.rules
}

// endProxy lets all requests pass.
func (r *run) endProxy() {
	r.rules = nil
	if r.suite.proxy != nil {
		r.suite.proxy.Disturb(nil)
	}
}

// startProxy starts the proxy of the control plane, which stays to its end.
func (s *suite) startProxy() error {
	if s.proxy != nil {
		return nil
	}
	var err error
	s.proxy, err = s.cp.NewProxy()
	return err
}
