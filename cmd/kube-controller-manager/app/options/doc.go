// Package options turns the command line into a config.Config.
//
// It keeps three promises. The flags, their sections, types and defaults are those
// of Kubernetes 1.36. All problems of a command line are reported in one message,
// each with the flag and the value, before anything is opened or started. And the
// component configuration is complete: what /configz shows is what is used.
//
// Every controller that has flags has one section: the flags, bound straight to the
// controller's part of the component configuration, and the check of what they were set
// to. It is in a file of its own, but for those whose only flag is a number of workers:
// they are in workers.go. options.go joins the sections.
//
// A configuration file (--config) sets the flags that the command line does not set. So it
// has what the flags have, fields.tsv says where, and the same checks hold for both.
//
// Files that a flag names are read while checking and not kept: who uses them reads
// them again. A file is checked only when a controller that is enabled uses it, so
// that a flag left over for a disabled controller stops nobody.
package options
