// Command kube-controller-manager runs the control loops of Kubernetes.
package main

import (
	"os"

	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app"
)

// main claims what a process has once: its signals, its heap and its handler of
// warnings. The command takes the context that it is given.
func main() {
	ctx := apiserver.SetupSignalContext()
	// The program reads deprecated APIs on purpose and cannot heed warnings of them.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	go app.TendHeap(ctx)
	cmd := app.NewControllerManagerCommand()
	cmd.SetContext(ctx)
	os.Exit(cli.Run(cmd))
}
