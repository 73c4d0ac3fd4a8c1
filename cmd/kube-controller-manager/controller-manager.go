// Command kube-controller-manager runs the control loops of Kubernetes.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app"
)

func main() {
	os.Exit(cli.Run(app.NewControllerManagerCommand()))
}
