package flex

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"
)

// betweenTries is how long a program that has failed is not asked again.
const betweenTries = 30 * time.Second

// Drivers are those in a directory. It is safe for concurrent use.
type Drivers struct {
	dir     string
	watcher *fsnotify.Watcher
	ready   atomic.Bool

	mu      sync.Mutex
	known   map[string]driver
	changed func(string)
	// failed are the programs that could not be asked, by path.
	failed map[string]failure
	// pause is how long they are not asked again.
	pause time.Duration
	// unwatched: the directory cannot be watched, and is looked at after each pause.
	unwatched bool
}

// failure is a program that could not be asked, and when.
type failure struct {
	file fs.FileInfo
	at   time.Time
}

// driver is a program and what it can do.
type driver struct {
	program  string
	file     fs.FileInfo // as it was when it was asked
	attaches bool
}

// Open makes the directory if there is none, and watches it. Run asks the drivers in it
// what they can do.
func Open(dir string) (*Drivers, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch for FlexVolume drivers: %w", err)
	}
	d := &Drivers{dir: dir, watcher: watcher, known: map[string]driver{}, failed: map[string]failure{}, pause: betweenTries, changed: func(string) {}}
	if err := d.watch(); err != nil {
		return nil, errors.Join(fmt.Errorf("watch %s for FlexVolume drivers: %w", dir, err), watcher.Close())
	}
	return d, nil
}

// Ready reports whether all drivers that were there at the start have been asked.
func (d *Drivers) Ready() bool { return d.ready.Load() }

// Run follows what comes to the directory and leaves it, until the context ends.
func (d *Drivers) Run(ctx context.Context) {
	defer func() { _ = d.watcher.Close() }()
	d.scan(ctx)
	d.ready.Store(true)
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.again():
			d.scan(ctx)
		case _, open := <-d.watcher.Events:
			if !open {
				return
			}
			d.scan(ctx)
		case err := <-d.watcher.Errors:
			klog.FromContext(ctx).Error(err, "Cannot watch for FlexVolume drivers", "directory", d.dir)
			d.scan(ctx)
		}
	}
}

// OnChange calls a function with each driver that comes or goes.
func (d *Drivers) OnChange(changed func(driver string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed = changed
}

// scan looks which drivers there are. One that is there still is not asked again, and what
// cannot be read says nothing of those that are known.
func (d *Drivers) scan(ctx context.Context) {
	err := d.watch()
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot watch the directory of FlexVolume drivers", "directory", d.dir)
	}
	d.mu.Lock()
	before, changed := maps.Clone(d.known), d.changed
	d.unwatched = err != nil
	d.mu.Unlock()
	now := map[string]driver{}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read the directory of FlexVolume drivers", "directory", d.dir)
		if !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	var each sync.WaitGroup
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		each.Go(func() {
			name, program := d.driverIn(entry.Name())
			known, was := before[name]
			if found, is := d.look(ctx, program, known, was); is {
				d.mu.Lock()
				defer d.mu.Unlock()
				now[name] = found
			}
		})
	}
	each.Wait()
	d.mu.Lock()
	d.known = now
	maps.DeleteFunc(d.failed, func(program string, _ failure) bool {
		_, err := os.Stat(program)
		return err != nil
	})
	d.mu.Unlock()
	for name, is := range now {
		if was, known := before[name]; !known || was.attaches != is.attaches {
			changed(name)
		}
	}
	for name := range before {
		if _, is := now[name]; !is {
			changed(name)
		}
	}
}

// watch watches the directory, which may be another one than before: who is removed or
// renamed is watched no more. One that is gone is made, so that it can be watched.
func (d *Drivers) watch() error {
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return err
	}
	return d.watcher.Add(d.dir)
}

// look returns the driver that a program is, which may be known already.
func (d *Drivers) look(ctx context.Context, program string, known driver, was bool) (driver, bool) {
	dir, err := os.Stat(filepath.Dir(program))
	if err != nil {
		return known, was && !errors.Is(err, fs.ErrNotExist)
	}
	if !dir.IsDir() {
		return driver{}, false
	}
	_ = d.watcher.Add(filepath.Dir(program)) // a program that comes later is looked for then
	file, err := os.Stat(program)
	switch {
	case err != nil:
		return known, was && !errors.Is(err, fs.ErrNotExist)
	case file.Mode()&0o111 == 0:
		return driver{}, false
	case was && os.SameFile(file, known.file) && file.ModTime().Equal(known.file.ModTime()):
		return known, true
	}
	if d.hasFailed(program, file) {
		return known, was
	}
	found, is := initial(ctx, program)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !is {
		d.failed[program] = failure{file, time.Now()}
		return known, was
	}
	delete(d.failed, program)
	found.file = file
	return found, true
}

// hasFailed reports whether a program has just failed as it is. One that writes beside itself
// when it fails would be asked again at once.
func (d *Drivers) hasFailed(program string, file fs.FileInfo) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, failed := d.failed[program]
	same := failed && os.SameFile(file, last.file) && file.ModTime().Equal(last.file.ModTime()) && file.Size() == last.file.Size()
	return same && time.Since(last.at) < d.pause
}

// again returns when to look again, though nothing changes: nil unless a program has failed
// or the directory is not watched.
func (d *Drivers) again() <-chan time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.failed) == 0 && !d.unwatched {
		return nil
	}
	return time.After(d.pause)
}

// driverIn is the driver of a directory, vendor~driver, and its program.
func (d *Drivers) driverIn(entry string) (name, program string) {
	vendor, driver, both := strings.Cut(entry, "~")
	if name = vendor + "/" + driver; !both {
		name, driver = entry, entry
	}
	return name, filepath.Join(d.dir, entry, driver)
}

// initial asks a driver what it can do. One that says nothing of attaching attaches.
func initial(ctx context.Context, program string) (driver, bool) {
	a, err := call(ctx, program, "init")
	if err != nil {
		klog.FromContext(ctx).Error(err, "A FlexVolume driver is left out")
		return driver{}, false
	}
	return driver{program: program, attaches: a.Capabilities == nil || a.Capabilities.Attach == nil || *a.Capabilities.Attach}, true
}
