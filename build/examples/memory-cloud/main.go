// Command memory-cloud is kube-controller-manager with a cloud provider built in, here
// one that exists in memory only. docs/cloud.md has more.
package main

import (
	"os"

	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/component-base/cli"

	"github.com/kube-kcm/kube-controller-manager/build/examples/memory-cloud/memory"
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app"
)

func main() {
	cloudprovider.RegisterCloudProvider(memory.Name, memory.New)
	ctx := apiserver.SetupSignalContext()
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	go app.TendHeap(ctx)
	cmd := app.NewControllerManagerCommand()
	cmd.SetContext(ctx)
	os.Exit(cli.Run(cmd))
}
