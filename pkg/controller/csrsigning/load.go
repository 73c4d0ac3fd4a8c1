package csrsigning

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
)

// checkEvery bounds how often the files are read while much is signed.
const checkEvery = time.Second

// Files are those of a certificate authority.
type Files struct {
	// Cert and Key are paths of PEM files.
	Cert, Key string
}

// String names the pair by its certificate.
func (f Files) String() string { return f.Cert }

// content is what the files held.
type content struct{ cert, key []byte }

func (c content) same(o content) bool {
	return bytes.Equal(c.cert, o.cert) && bytes.Equal(c.key, o.key)
}

func (f Files) read() (content, error) {
	cert, err := os.ReadFile(f.Cert)
	if err != nil {
		return content{}, err
	}
	key, err := os.ReadFile(f.Key)
	return content{cert, key}, err
}

// pair is the authority that files held when they could last be used.
type pair struct {
	files Files

	current atomic.Pointer[certificates.Authority]

	// looking guards what follows. It is held while the files are read, which may
	// take long: nobody waits for it.
	looking sync.Mutex
	used    content
	// trouble is why the files cannot be used now; logged once.
	trouble string
	checked time.Time
}

// change is what a look at the files found that was not known before.
type change struct {
	replaced bool
	trouble  error
}

// load reads the files for the first time.
func load(files Files) (*pair, error) {
	p := &pair{files: files}
	held, err := files.read()
	var current *certificates.Authority
	if err == nil {
		current, err = certificates.ParseAuthority(held.cert, held.key)
	}
	if err != nil {
		return nil, fmt.Errorf("error reading CA cert file %q with key file %q: %w", files.Cert, files.Key, err)
	}
	p.used = held
	p.current.Store(current)
	return p, nil
}

// authority is what is signed with.
func (p *pair) authority() *certificates.Authority { return p.current.Load() }

// look reads the files, unless that was done just now or another does it. Files that cannot be used,
// such as a certificate whose key has not been written yet, leave the pair as it is.
func (p *pair) look(now time.Time) change {
	if !p.looking.TryLock() {
		return change{}
	}
	defer p.looking.Unlock()
	if since := now.Sub(p.checked); since >= 0 && since < checkEvery {
		return change{}
	}
	p.checked = now
	held, err := p.files.read()
	if err == nil && held.same(p.used) {
		p.trouble = ""
		return change{}
	}
	var replacement *certificates.Authority
	if err == nil {
		replacement, err = certificates.ParseAuthority(held.cert, held.key)
	}
	if err != nil {
		known := p.trouble == err.Error()
		p.trouble = err.Error()
		if known {
			return change{}
		}
		return change{trouble: errors.New(p.trouble)}
	}
	p.used, p.trouble = held, ""
	p.current.Store(replacement)
	return change{replaced: true}
}
