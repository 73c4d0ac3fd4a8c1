package app

import (
	"context"
	"net/http"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/ttl"
)

func startTTLController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	hand, err := cc.hand(ctx, "ttl-controller", "")
	if err != nil {
		return nil, false, err
	}
	c, err := ttl.New(cc.Informers.Core().V1().Nodes(), hand)
	return cc.run(ctx, c, err)
}
