//go:build !linux

package app

// releaseExecutable does nothing where the system cannot be asked.
func releaseExecutable() error { return nil }
