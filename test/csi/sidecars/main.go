// Command sidecars plays the side-cars of a CSI driver in a cluster of simulated
// nodes, and says for the nodes which volumes they use, until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-kcm/kube-controller-manager/test/csi"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sidecars:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("sidecars", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "the cluster")
	name := flags.String("driver", "csi.example.com", "the driver")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make the client: %w", err)
	}
	driver, err := csi.Start(client, *name)
	if err != nil {
		return err
	}
	defer driver.Stop()
	nodes, err := csi.StartNodes(client)
	if err != nil {
		return err
	}
	defer nodes.Stop()
	<-ctx.Done()
	return nil
}
