// Package csi pretends to be the side-cars of CSI drivers, for tests of volumes
// that have no storage: the provisioner, the attacher and the resizer that run
// beside a real driver. They watch and write as the real ones do, and the driver
// behind them answers at once, with an error, or never.
package csi
