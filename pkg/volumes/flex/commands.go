package flex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
)

// The options that every command about a volume gets.
const (
	optionFSType    = "kubernetes.io/fsType"
	optionReadWrite = "kubernetes.io/readwrite"
	optionName      = "kubernetes.io/pvOrVolumeName"
)

func (d *Drivers) driver(name string) (driver, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, is := d.known[name]
	if !is {
		return driver{}, fmt.Errorf("there is no FlexVolume driver %s in %s", name, d.dir)
	}
	return known, nil
}

// Attaches reports whether a driver is installed that attaches volumes.
func (d *Drivers) Attaches(name string) bool {
	known, err := d.driver(name)
	return err == nil && known.attaches
}

// Attach has a driver attach a volume, known to it by that title, to a node, and returns
// the path of the device there. There is nothing to do for a driver that does not know how.
func (d *Drivers) Attach(ctx context.Context, volume volumes.Flex, title, node string) (string, error) {
	a, err := d.run(ctx, volume, title, node, "attach")
	if errors.Is(err, ErrNotSupported) {
		return "", nil
	}
	return a.Device, err
}

// Attached reports whether a volume is attached to a node, as its driver says.
func (d *Drivers) Attached(ctx context.Context, volume volumes.Flex, title, node string) (bool, error) {
	a, err := d.run(ctx, volume, title, node, "isattached")
	if errors.Is(err, ErrNotSupported) {
		return true, nil
	}
	return a.Attached, err
}

// Detach has a driver detach a volume from a node.
func (d *Drivers) Detach(ctx context.Context, name, title, node string) error {
	known, err := d.driver(name)
	if err != nil {
		return err
	}
	if _, err = call(ctx, known.program, "detach", title, node); errors.Is(err, ErrNotSupported) {
		return nil
	}
	return err
}

func (d *Drivers) run(ctx context.Context, volume volumes.Flex, title, node, command string) (answer, error) {
	known, err := d.driver(volume.Driver)
	if err != nil {
		return answer{}, err
	}
	options := map[string]string{optionFSType: volume.FSType, optionReadWrite: "rw", optionName: title}
	if volume.ReadOnly {
		options[optionReadWrite] = "ro"
	}
	maps.Copy(options, volume.Options)
	data, err := json.Marshal(options)
	if err != nil {
		return answer{}, fmt.Errorf("encode the options of volume %s: %w", title, err)
	}
	return call(ctx, known.program, command, string(data), node)
}
