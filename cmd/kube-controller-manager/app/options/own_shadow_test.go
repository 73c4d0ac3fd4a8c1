package options

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
	kcmtransport "github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

func TestWhatCannotBeAShadow(t *testing.T) {
	t.Chdir(sampleFiles(t))
	for line, want := range map[string]string{
		"--shadow":                                      "",
		"--shadow --leader-elect=true":                  "",
		"--shadow --shadow-window=2m":                   "",
		"--shadow --cloud-provider=external":            "",
		"--shadow --shadow-window=0s":                   "shadow-window must not be less than 1s, but got 0s",
		"--shadow --shadow-window=-5s":                  "shadow-window must not be less than 1s, but got -5s",
		"--shadow-window=1m":                            "--shadow-window=1m0s has no effect without --shadow",
		"--shadow --enable-leader-migration":            "--enable-leader-migration cannot be used with --shadow",
		"--shadow --cloud-provider=memory":              "--cloud-provider=memory cannot be used with --shadow",
		"--shadow --shadow-window=1ms --kube-api-qps=x": "invalid argument",
	} {
		t.Run(line, func(t *testing.T) {
			c, err := parsed(t, strings.Fields(line)...)
			if err == nil {
				err = c.checked()
			}
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("said %v, want %q", err, want)
			}
		})
	}
}

type never struct{ t *testing.T }

func (n never) RoundTrip(req *http.Request) (*http.Response, error) {
	n.t.Errorf("sent %s %s", req.Method, req.URL)
	return nil, errors.New("unexpected")
}

func TestNoClientOfAShadowWrites(t *testing.T) {
	o := &KubeControllerManagerOptions{Shadow: ShadowOptions{Window: time.Minute}}
	c := &config.Config{Kubeconfig: &rest.Config{Host: "https://server"}, BatchWatchReads: true}
	if o.applyShadow(c); c.Shadow != nil || c.Kubeconfig.WrapTransport != nil || !c.BatchWatchReads {
		t.Fatal("a process that was not asked to be a shadow is one")
	}
	o.Shadow.Enabled = true
	o.applyShadow(c)
	req, err := http.NewRequest(http.MethodPost, "https://server/api/v1/namespaces/ns/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubeconfig.WrapTransport(never{t}).RoundTrip(req); !errors.Is(err, kcmtransport.ErrReadOnly) {
		t.Errorf("ended with %v", err)
	}
	if c.Shadow.Window != time.Minute || c.Shadow.ReadOnly.Refused() != 1 || c.BatchWatchReads {
		t.Errorf("is %+v, reads in batches: %t", c.Shadow, c.BatchWatchReads)
	}
}
