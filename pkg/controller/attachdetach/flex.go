package attachdetach

import (
	"context"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// Drivers are the FlexVolume drivers of this host.
type Drivers interface {
	// Ready reports whether it is known which drivers there are.
	Ready() bool
	// Attaches reports whether a driver is installed that attaches volumes.
	Attaches(driver string) bool
	// Attach has a driver attach a volume, known to it by that title, to a node, and returns
	// the path of the device there.
	Attach(ctx context.Context, volume volumes.Flex, title, node string) (device string, err error)
	// Attached reports whether a volume is attached to a node, as its driver says.
	Attached(ctx context.Context, volume volumes.Flex, title, node string) (bool, error)
	// OnChange calls a function with each driver that comes or goes.
	OnChange(func(driver string))
	// Detach has a driver detach a volume from a node.
	Detach(ctx context.Context, driver, title, node string) error
}

// besides runs the commands of drivers while another worker takes the place of the one that
// waits: a driver that hangs, with however many volumes, holds up only these.
type besides struct {
	Drivers
	beside func(func())
}

func (b besides) Attach(ctx context.Context, volume volumes.Flex, title, node string) (device string, err error) {
	b.beside(func() { device, err = b.Drivers.Attach(ctx, volume, title, node) })
	return device, err
}

func (b besides) Attached(ctx context.Context, volume volumes.Flex, title, node string) (is bool, err error) {
	b.beside(func() { is, err = b.Drivers.Attached(ctx, volume, title, node) })
	return is, err
}

func (b besides) Detach(ctx context.Context, driver, title, node string) (err error) {
	b.beside(func() { err = b.Drivers.Detach(ctx, driver, title, node) })
	return err
}

// callAttach runs the attach command of a FlexVolume driver; nil for volumes to whose
// attachment there is nothing, such as those of iSCSI.
func (d *draft) callAttach(node string) act.Step {
	source := d.v.sourceAt(node)
	if source == nil || source.Flex == nil {
		return nil
	}
	drivers, flex, title := d.v.options.Drivers, *source.Flex, source.Title
	return act.Call{Of: nodeNamed(node), What: "attach", Do: func(ctx context.Context) (any, error) {
		device, err := drivers.Attach(ctx, flex, title, node)
		return device, err
	}}
}

// callAttached asks a FlexVolume driver whether a volume is attached still.
func (d *draft) callAttached(node string) act.Step {
	source := d.v.sourceAt(node)
	drivers, flex, title := d.v.options.Drivers, *source.Flex, source.Title
	return act.Call{Of: nodeNamed(node), What: "isattached", Do: func(ctx context.Context) (any, error) {
		return drivers.Attached(ctx, flex, title, node)
	}}
}

// callDetach runs the detach command of a FlexVolume driver; nil if there is nothing to it.
func (d *draft) callDetach(node string) act.Step {
	driver := volumes.PluginOf(d.v.name)
	if driver == volumes.ISCSI || driver == volumes.FC {
		return nil
	}
	drivers, title := d.v.options.Drivers, strings.TrimPrefix(string(d.v.name), driver+"/")
	return act.Call{Of: nodeNamed(node), What: "detach", Do: func(ctx context.Context) (any, error) {
		return nil, drivers.Detach(ctx, driver, title, node)
	}}
}
