// Command kubectl-kcm is a plugin of kubectl: "kubectl kcm why deployment/web" asks the
// controller manager that leads why an object is as it is.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
