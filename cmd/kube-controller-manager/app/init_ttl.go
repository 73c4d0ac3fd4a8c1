package app

import (
	"context"
	"net/http"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/ttl"
)

// ttlWorkers is how many nodes get their time to live at once.
const ttlWorkers = 5

func startTTLController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	client, err := cc.Client("ttl-controller")
	if err != nil {
		return nil, false, err
	}
	c, err := ttl.New(cc.Informers.Core().V1().Nodes(), client, ttl.Options{Workers: ttlWorkers, Clock: cc.Clock})
	return cc.run(ctx, c, err)
}
