// Package badinput holds the command lines that are known to go wrong
// somewhere, and the answer to each.
package badinput

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

//go:embed bad-input.tsv
var original string

//go:embed answers.tsv
var ours string

// Row is a command line and its answer.
type Row struct {
	// CommandLine names the row; behind "   (" stands what the cluster is like.
	CommandLine string
	// When is where the answer comes: parse, check and start end the process
	// with exit code 1; accepted is no error; command, stamped and elsewhere
	// are told by tests of their own.
	When string
	// Message is a part of the answer.
	Message string
	// Differs says how the answer is not that of the original: it comes
	// earlier, before anything is started; it is stricter, because the value
	// cannot be meant; it is worded otherwise, to name the flag.
	Differs string
	// OriginalStage is where the original answers.
	OriginalStage string
}

// Args is the command line without the program.
func (r Row) Args() []string {
	line, _, _ := strings.Cut(r.CommandLine, "   (")
	return strings.Fields(line)
}

// Rows returns all known command lines. It fails when one has no answer, or an
// answer no command line.
func Rows() ([]Row, error) {
	answers := map[string][]string{}
	for _, fields := range table(ours) {
		answers[fields[0]] = fields
	}
	var rows []Row
	for _, fields := range table(original) {
		answer, ok := answers[fields[0]]
		if !ok {
			return nil, fmt.Errorf("no answer is known to %s", fields[0])
		}
		rows = append(rows, Row{fields[0], answer[1], answer[2], answer[3], fields[2]})
	}
	if len(rows) != len(answers) {
		return nil, fmt.Errorf("%d answers to %d command lines", len(answers), len(rows))
	}
	return rows, nil
}

func table(text string) [][]string {
	var rows [][]string
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n")[1:] {
		rows = append(rows, strings.Split(line, "\t"))
	}
	return rows
}

const (
	garbage = "neither a certificate nor a manifest\n"

	deadKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
	clusterlessKubeconfig = `apiVersion: v1
kind: Config
`
	wrongMigration = `apiVersion: v1
kind: ConfigMap
`
)

type pair struct{ certificate, key, other []byte }

// keys take long to make, so that all tests of a process share them.
var keys = sync.OnceValues(func() (pair, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("sample", nil, nil)
	if err != nil {
		return pair{}, err
	}
	// An authority is one certificate; what was made is one and its issuer's.
	first, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		return pair{}, err
	}
	if certificate, err = cert.EncodeCertificates(first[0]); err != nil {
		return pair{}, err
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	otherKey, err := keyutil.MarshalPrivateKeyToPEM(other)
	return pair{certificate, key, otherKey}, err
})

// WriteSampleFiles writes to dir the files that the command lines name, sound
// and broken ones.
func WriteSampleFiles(dir string) error {
	pair, err := keys()
	if err != nil {
		return fmt.Errorf("make a key pair: %w", err)
	}
	for name, data := range map[string][]byte{
		"ca.crt": pair.certificate, "ca.key": pair.key,
		"admin.crt": pair.certificate, "admin.key": pair.key,
		"other.key":      pair.other,
		"empty.crt":      nil,
		"garbage.crt":    []byte(garbage),
		"broken.yaml":    []byte("{"),
		"dead.yaml":      []byte(deadKubeconfig),
		"nocluster.yaml": []byte(clusterlessKubeconfig),
		"lm-bad.yaml":    []byte(wrongMigration),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("write sample file: %w", err)
		}
	}
	return nil
}
