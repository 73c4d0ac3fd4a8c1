package flex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"k8s.io/klog/v2"
)

// ErrNotSupported is of a command that a driver does not know.
var ErrNotSupported = errors.New("not supported")

const (
	success      = "Success"
	notSupported = "Not supported"

	// longest is how long a driver may take for a command.
	longest = 2 * time.Minute
	// afterEnd is how long the output of a driver may stay open after its end.
	afterEnd = time.Second
)

// answer is what a driver says.
type answer struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	// Device is where an attached volume is on its node.
	Device string `json:"device"`
	// Attached is of isattached.
	Attached bool `json:"attached"`
	// Capabilities are of init.
	Capabilities *struct {
		Attach *bool `json:"attach"`
	} `json:"capabilities"`
}

// call runs a command of a driver.
func call(ctx context.Context, program, command string, args ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	run := exec.CommandContext(ctx, program, append([]string{command}, args...)...)
	run.WaitDelay = afterEnd
	output, failed := run.CombinedOutput()
	var a answer
	switch err := json.Unmarshal(output, &a); {
	case ctx.Err() != nil:
		return a, fmt.Errorf("%s of FlexVolume driver %s: %w", command, program, ctx.Err())
	case err == nil && a.Status == notSupported:
		return a, fmt.Errorf("%s of FlexVolume driver %s: %w", command, program, ErrNotSupported)
	case err == nil && a.Status != success:
		return a, fmt.Errorf("%s command failed, status: %s, reason: %s", command, a.Status, a.Message)
	case err != nil:
		klog.FromContext(ctx).Error(err, "Cannot read the answer of a FlexVolume driver", "program", program, "command", command, "output", string(output), "exit", failed)
		return a, err
	case failed != nil && !errors.Is(failed, exec.ErrWaitDelay): // what it has left in the background may write still
		klog.FromContext(ctx).Error(failed, "A FlexVolume driver that says success has failed", "program", program, "command", command, "output", string(output))
		return a, failed
	}
	return a, nil
}
