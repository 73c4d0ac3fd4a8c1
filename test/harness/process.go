package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a child process whose output goes to a file. It dies with the
// test process, however that ends.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// spawner is the one goroutine that starts children. A death signal follows
// the thread that forked, so that thread must live as long as the process.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// startProcess appends the output to the file log.
func startProcess(name, path string, args []string, log string) (*Process, error) {
	return StartCommand(name, exec.Command(path, args...), log)
}

// StartCommand starts a command that dies with the test and has a process group of its
// own. Its output is appended to the file log.
func StartCommand(name string, command *exec.Cmd, log string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer out.Close()
	p := &Process{name: name, cmd: command, log: log, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if p.cmd.SysProcAttr == nil {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	p.cmd.SysProcAttr.Pdeathsig, p.cmd.SysProcAttr.Setpgid = syscall.SIGKILL, true
	started := make(chan error)
	spawner() <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.done }

// Running says whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ExitCode is the code of an ended process, -1 when a signal ended it or when
// it still runs.
func (p *Process) ExitCode() int {
	if p.Running() {
		return -1
	}
	return p.cmd.ProcessState.ExitCode()
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal; to an ended process it does nothing.
func (p *Process) Signal(sig os.Signal) { _ = p.cmd.Process.Signal(sig) }

// Kill ends the process at once and waits for its end.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Terminate sends SIGTERM and waits. A process that is still there after the
// grace period is killed, and that is an error.
func (p *Process) Terminate(grace time.Duration) error {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
		p.Kill()
		return fmt.Errorf("%s did not end within %s of SIGTERM", p.name, grace)
	}
}

// handedOut are the ports that a test beside this one may be about to use.
var handedOut = struct {
	sync.Mutex
	until map[int]time.Time
}{until: map[int]time.Time{}}

// Ports from firstPort on are above those that Kubernetes' programs listen on
// unless told otherwise, and below lastPort none is handed to an outgoing
// connection by the kernel before the process listens.
const firstPort, lastPort = 11000, 30000

// freePort finds a port on 127.0.0.1 that nobody listens on and that was handed
// to no other test of the last minutes.
func freePort() (int, error) {
	handedOut.Lock()
	defer handedOut.Unlock()
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if time.Now().Before(handedOut.until[port]) {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		handedOut.until[port] = time.Now().Add(5 * time.Minute)
		return port, listener.Close()
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 between %d and %d", firstPort, lastPort)
}

// NeedPort fails the test if something listens on a port that it needs.
func NeedPort(t testing.TB, port int) {
	t.Helper()
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		t.Fatalf("something else listens on %d, which this test needs: %v", port, err)
	}
	_ = listener.Close()
}

// poll calls check every 50 ms until it returns nil, the process ends or the
// deadline passes.
func (p *Process) poll(within time.Duration, check func() error) error {
	deadline := time.After(within)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended with code %d:\n%s", p.name, p.ExitCode(), Tail(p.log, 0, 30))
		case <-deadline:
			return fmt.Errorf("%s is not ready after %s: %w\n%s", p.name, within, err, Tail(p.log, 0, 30))
		case <-tick.C:
		}
	}
}
