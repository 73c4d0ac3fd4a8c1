package main

import (
	"bytes"
	"encoding/pem"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/kube-kcm/kube-controller-manager/hack/image/files"
)

const (
	licenses     = "usr/share/licenses"
	certificates = "etc/ssl/certs/ca-certificates.crt"
)

// root returns the files of an image in their order, every directory before what is in it.
func root(p platform, license string) ([]files.File, error) {
	all := []files.File{
		{Name: "etc/passwd", Mode: 0o644, Content: []byte("root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n")},
		{Name: "etc/group", Mode: 0o644, Content: []byte("root:x:0:\nnobody:x:65534:\n")},
		{Name: certificates, Mode: 0o644, Content: authorities()},
		{Name: "root/", Mode: 0o700},
		{Name: "tmp/", Mode: 0o1777},
		{Name: "var/log/", Mode: 0o755},
	}
	program := filepath.Join(p.dir, "kube-controller-manager")
	for from, to := range map[string]string{
		program:                           "usr/local/bin/kube-controller-manager",
		filepath.Join(p.dir, "go-runner"): "go-runner",
		license:                           path.Join(licenses, "kube-controller-manager", "LICENSE"),
	} {
		content, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		mode := int64(0o755)
		if from == license {
			mode = 0o644
		}
		all = append(all, files.File{Name: to, Mode: mode, Content: content})
	}
	others, err := files.Licenses(program, filepath.Join(p.dir, "go-runner"))
	if err != nil {
		return nil, err
	}
	for _, f := range others {
		f.Name = path.Join(licenses, f.Name)
		all = append(all, f)
	}
	return files.WithDirectories(all), nil
}

// authorities are the certificates of the public authorities.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return all.Bytes()
}
