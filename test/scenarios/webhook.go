package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// parseWebhook reads "off" or "OPERATION RES[,RES...] CODE".
func parseWebhook(line string) (refuse harness.Refusal, off bool, err error) {
	fields := words(line)
	if len(fields) == 1 && fields[0] == "off" {
		return refuse, true, nil
	}
	if len(fields) != 3 || !slices.Contains([]string{"create", "update", "delete"}, fields[0]) {
		return refuse, false, fmt.Errorf("webhook takes off, or create, update or delete, RES[,RES...] and a code, not %q", line)
	}
	code, err := strconv.ParseInt(fields[2], 10, 32)
	if err != nil || code < 400 || code > 599 {
		return refuse, false, fmt.Errorf("webhook takes a code from 400 to 599, not %q", fields[2])
	}
	return harness.Refusal{Operation: fields[0], Resources: strings.Split(fields[1], ","), Code: int32(code)}, false, nil
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
