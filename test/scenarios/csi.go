package scenarios

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/test/csi"
)

// driving is what a csi line says: which side-cars of a driver run, or how it
// answers a call.
type driving struct {
	driver   string
	off      bool
	sidecars []csi.Sidecar
	call     csi.Call
	answer   csi.Answer
}

// parseCSI reads
//
//	DRIVER [provisioner] [attacher] [resizer]
//	DRIVER off
//	DRIVER CALL works|hangs|fails MESSAGE
func parseCSI(line string) (driving, error) {
	fields := words(line)
	if len(fields) == 0 {
		return driving{}, errors.New("csi takes a driver, and its side-cars or a call and its answer")
	}
	d := driving{driver: fields[0]}
	rest := fields[1:]
	if len(rest) == 1 && rest[0] == "off" {
		d.off = true
		return d, nil
	}
	if len(rest) > 0 && slices.Contains(csi.Calls, csi.Call(rest[0])) {
		d.call = csi.Call(rest[0])
		_, text := cut(line)
		_, text = cut(text)
		return d, d.answered(cut(text))
	}
	for _, word := range rest {
		if !slices.Contains(csi.Sidecars, csi.Sidecar(word)) {
			return d, fmt.Errorf("csi: %q is none of %v, and no call of %v", word, csi.Sidecars, csi.Calls)
		}
		d.sidecars = append(d.sidecars, csi.Sidecar(word))
	}
	return d, nil
}

func (d *driving) answered(how, message string) error {
	switch {
	case how == "works" && message == "":
	case how == "hangs" && message == "":
		d.answer.Never = true
	case how == "fails" && message != "":
		d.answer.Error = unquote(message)
	default:
		return fmt.Errorf("csi DRIVER %s takes works, hangs or fails MESSAGE, not %q", d.call, how+" "+message)
	}
	return nil
}

func wantCSI(s Step) error {
	_, err := parseCSI(s.Rest)
	return err
}

// csi starts the side-cars of a driver, ends them, or changes what it answers.
func (r *run) csi(_ context.Context, step Step) error {
	d, err := parseCSI(step.Rest)
	if err != nil {
		return err
	}
	driver := r.suite.drivers[d.driver]
	if d.call != "" {
		if driver == nil {
			return fmt.Errorf("no side-cars of the driver %s run", d.driver)
		}
		driver.Answers(d.call, d.answer)
		return nil
	}
	if driver != nil {
		driver.Stop()
		delete(r.suite.drivers, d.driver)
	}
	if d.off {
		return nil
	}
	r.suite.drivers[d.driver], err = csi.Start(r.suite.typed, d.driver, d.sidecars...)
	return err
}

// endDrivers ends all side-cars, and nodes mount no more volumes.
func (s *suite) endDrivers() {
	for driver := range maps.Values(s.drivers) {
		driver.Stop()
	}
	clear(s.drivers)
	s.kubelet.UnmountVolumes()
}

// volumeResources are of no namespace, and controllers and side-cars make them.
var volumeResources = []schema.GroupVersionResource{
	{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"},
	{Version: "v1", Resource: "persistentvolumes"},
}

// removeVolumes removes all volumes and attachments, whoever has made them.
func (s *suite) removeVolumes(ctx context.Context) error {
	var errs []error
	for _, gvr := range volumeResources {
		list, err := s.resource(gvr, "").List(ctx, metav1.ListOptions{})
		if err != nil {
			errs = append(errs, fmt.Errorf("list %s: %w", gvr.Resource, err))
			continue
		}
		for _, object := range list.Items {
			errs = append(errs, s.removeStray(ctx, stray{gvr: gvr, name: object.GetName()}))
		}
	}
	return errors.Join(errs...)
}
