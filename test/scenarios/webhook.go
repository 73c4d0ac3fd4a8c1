package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// parseWebhook reads "off" or "OPERATION RES[,RES...] CODE [in=NAMESPACE]".
func parseWebhook(line string) (refuse harness.Refusal, off bool, err error) {
	fields := words(line)
	if len(fields) == 1 && fields[0] == "off" {
		return refuse, true, nil
	}
	if len(fields) < 3 || len(fields) > 4 || !slices.Contains([]string{"create", "update", "delete"}, fields[0]) {
		return refuse, false, fmt.Errorf("webhook takes off, or create, update or delete, RES[,RES...], a code and optionally in=NAMESPACE, not %q", line)
	}
	code, err := strconv.ParseInt(fields[2], 10, 32)
	if err != nil || code < 400 || code > 599 {
		return refuse, false, fmt.Errorf("webhook takes a code from 400 to 599, not %q", fields[2])
	}
	refuse = harness.Refusal{Operation: fields[0], Resources: strings.Split(fields[1], ","), Code: int32(code)}
	if len(fields) == 4 {
		namespace, ok := strings.CutPrefix(fields[3], "in=")
		if !ok || namespace == "" {
			return refuse, false, fmt.Errorf("webhook takes in=NAMESPACE after the code, not %q", fields[3])
		}
		refuse.Namespace = namespace
	}
	return refuse, false, nil
}

// parseRefused reads "RES/NAME OP N".
func parseRefused(c condition, rest string) (condition, error) {
	fields := words(rest)
	if len(fields) != 3 || !slices.Contains([]string{"==", "!=", ">=", "<="}, fields[1]) {
		return c, fmt.Errorf("expect-refused takes RES/NAME OPERATOR NUMBER, not %q", rest)
	}
	c.target, c.op, c.value = fields[0], fields[1], fields[2]
	if _, err := strconv.Atoi(c.value); err != nil {
		return c, fmt.Errorf("expect-refused needs a number, not %q", c.value)
	}
	return c, wantReference(c.target)
}

// refused compares how often the webhook that is on has refused something to the object.
func (c condition) refused(ctx context.Context, r *run) (bool, string, error) {
	if r.hook == nil {
		return false, "", errors.New("no webhook is on")
	}
	ref, err := r.resolve(ctx, c.target)
	if err != nil {
		return false, "", err
	}
	total, counts := 0, r.hook.Refused(ref.gvr.Resource, ref.namespace)
	for name, n := range counts {
		if ref.matches(name) {
			total += n
		}
	}
	return order(c.op, strconv.Itoa(total), c.value), fmt.Sprintf("refused %d times; all refusals in %q: %v", total, ref.namespace, counts), nil
}

func wantWebhook(s Step) error {
	_, _, err := parseWebhook(s.Rest)
	return err
}

// webhook has an admission webhook refuse what controllers ask for, or no longer.
func (r *run) webhook(ctx context.Context, step Step) error {
	refuse, off, err := parseWebhook(step.Rest)
	if err != nil {
		return err
	}
	if err := r.endWebhook(ctx); err != nil || off {
		return err
	}
	if refuse.Namespace == "" {
		refuse.Namespace = r.namespace
	}
	r.hook, err = harness.StartWebhook(ctx, r.suite.cp.Admin, r.namespace, refuse)
	return err
}

func (r *run) endWebhook(ctx context.Context) error {
	if r.hook == nil {
		return nil
	}
	err := r.hook.Stop(ctx)
	r.hook = nil
	return err
}
