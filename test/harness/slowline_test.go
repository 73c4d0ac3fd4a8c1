package harness

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"
)

func TestASlowLineDelaysAllThatIsSentByTheSame(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			fmt.Fprintln(conn, lines.Text())
		}
		_ = conn.Close()
	}()
	const delay, count = 100 * time.Millisecond, 20
	line, err := NewSlowLine(server.Addr().String(), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	conn, err := net.Dial("tcp", line.Address())
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for i := range count {
		fmt.Fprintln(conn, "line", i)
	}
	echo := bufio.NewScanner(conn)
	for i := range count {
		if !echo.Scan() || echo.Text() != fmt.Sprint("line ", i) {
			t.Fatalf("got %q for line %d: %v", echo.Text(), i, echo.Err())
		}
	}
	if took := time.Since(begin); took < delay || took > count*delay {
		t.Errorf("%d lines took %s, with a delay of %s", count, took, delay)
	}
	line.Close()
	if echo.Scan() {
		t.Errorf("the line still carries %q", echo.Text())
	}
}
