package wire

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// A write to a pipe ends when it was read: when that is tells when the reader came.
func TestAConnectionIsLeftAloneAfterNews(t *testing.T) {
	for name, tc := range map[string]struct {
		calmFrom time.Duration
		buffer   int
		want     time.Duration
	}{
		"news that come soon after others are read later": {0, 8, lull},
		"more than fits is read at once":                  {0, 1, 0},
		"the first state is read at once":                 {time.Minute, 8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, client := net.Pipe()
				c := &calm{Conn: client, from: time.Now().Add(tc.calmFrom - time.Nanosecond), closed: make(chan struct{})}
				defer c.Close()
				go func() {
					for p := make([]byte, tc.buffer); ; {
						if _, err := c.Read(p); err != nil {
							return
						}
					}
				}()
				for i, want := range []time.Duration{0, tc.want, tc.want} {
					began := time.Now()
					if _, err := server.Write([]byte{1}); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took != want {
						t.Errorf("news %d was read after %v, want %v", i, took, want)
					}
				}
				<-time.After(lull)
				began := time.Now()
				if _, err := server.Write([]byte{1}); err != nil || time.Since(began) != 0 {
					t.Errorf("news after a rest were read after %v (%v), want at once", time.Since(began), err)
				}
			})
		})
	}
}

func TestClosingEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := net.Pipe()
		c := &calm{Conn: client, again: time.Now().Add(time.Hour), closed: make(chan struct{})}
		began := time.Now()
		time.AfterFunc(time.Second, func() { c.Close() })
		if _, err := c.Read(make([]byte, 1)); err == nil || time.Since(began) != time.Second {
			t.Errorf("after %v: %v; want an error after a second", time.Since(began), err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("closed again: %v", err)
		}
	})
}
