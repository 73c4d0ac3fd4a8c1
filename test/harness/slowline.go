package harness

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// SlowLine is a long line to a server: what is sent arrives later, and any
// number of requests can be on their way.
type SlowLine struct {
	listener net.Listener
	to       string
	delay    time.Duration

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// NewSlowLine listens on loopback for connections to the address.
func NewSlowLine(to string, delay time.Duration) (*SlowLine, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the slow line: %w", err)
	}
	l := &SlowLine{listener: listener, to: to, delay: delay, conns: map[net.Conn]bool{}}
	go l.accept()
	return l, nil
}

// Address is what to connect to.
func (l *SlowLine) Address() string { return l.listener.Addr().String() }

// Close ends the line with all that passes it.
func (l *SlowLine) Close() {
	_ = l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		_ = conn.Close()
	}
}

// SlowKubeconfig is the manager's kubeconfig over a line on which each request
// takes that much longer.
func (k *Kwok) SlowKubeconfig(delay time.Duration) (path string, line *SlowLine, err error) {
	config, err := clientcmd.LoadFromFile(k.ManagerKubeconfig)
	if err != nil {
		return "", nil, fmt.Errorf("read the manager's kubeconfig: %w", err)
	}
	server, err := url.Parse(k.Config.Host)
	if err != nil {
		return "", nil, fmt.Errorf("read the API server's address: %w", err)
	}
	if line, err = NewSlowLine(server.Host, delay); err != nil {
		return "", nil, err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + line.Address()
	}
	path = filepath.Join(k.Dir, "slow.conf")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		line.Close()
		return "", nil, fmt.Errorf("write the slow kubeconfig: %w", err)
	}
	return path, line, nil
}

func (l *SlowLine) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.connect(from)
	}
}

func (l *SlowLine) connect(from net.Conn) {
	to, err := net.Dial("tcp", l.to)
	if err != nil {
		_ = from.Close()
		return
	}
	l.mu.Lock()
	l.conns[from], l.conns[to] = true, true
	l.mu.Unlock()
	go l.carry(to, from, l.delay)
	l.carry(from, to, 0)
}

// packet is some bytes, and when they are to arrive.
type packet struct {
	bytes []byte
	due   time.Time
}

// carry passes bytes on in one direction until either end is closed.
func (l *SlowLine) carry(to, from net.Conn, delay time.Duration) {
	pieces := make(chan packet, 1024)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for p := range pieces {
			<-time.After(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				_ = from.Close()
			}
		}
	}()
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			pieces <- packet{buffer[:n], time.Now().Add(delay)}
		}
		if err != nil {
			break
		}
	}
	close(pieces)
	<-done
	_ = to.Close()
	l.mu.Lock()
	delete(l.conns, from)
	delete(l.conns, to)
	l.mu.Unlock()
}
