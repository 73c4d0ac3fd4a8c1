package cloud

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	cloudprovider "k8s.io/cloud-provider"
	fakecloud "k8s.io/cloud-provider/fake"
)

func init() {
	cloudprovider.RegisterCloudProvider("open-test", func(config io.Reader) (cloudprovider.Interface, error) {
		if config == nil {
			return &fakecloud.Cloud{Provider: "without"}, nil
		}
		content, err := io.ReadAll(config)
		if err == nil && string(content) != "good" {
			err = errors.New("no region in it")
		}
		return &fakecloud.Cloud{Provider: string(content)}, err
	})
}

func TestOpen(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{"good": "good", "bad": "region="} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		provider, file string
		want           string // the name of what is made, or a part of the error
	}{
		"no name is no provider":       {"", "nothing", ""},
		"external is none of ours":     {"external", "nothing", ""},
		"a name that nobody has":       {"aws", "", `--cloud-provider=aws: unknown cloud provider "aws"`},
		"no file":                      {"open-test", "", "without"},
		"a file that can be read":      {"open-test", "good", "good"},
		"a file that is not there":     {"open-test", "nothing", "--cloud-config=nothing: couldn't open cloud provider configuration: open nothing: no such file"},
		"a file that the cloud reads ": {"open-test", "bad", `--cloud-config=bad: could not init cloud provider "open-test": no region in it`},
		"a directory":                  {"open-test", ".", "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Open(tc.provider, tc.file)
			switch {
			case err != nil && (tc.want == "" || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			case err == nil && got == nil && tc.want != "", err == nil && got != nil && got.ProviderName() != tc.want:
				t.Errorf("got %v, want %q", got, tc.want)
			}
		})
	}
}

func TestClusterCIDRs(t *testing.T) {
	for value, want := range map[string]string{
		"10.244.0.0/16":                         "10.244.0.0/16",
		" 10.244.7.1/16 ":                       "10.244.0.0/16",
		"fd00::/64,10.244.0.0/16":               "fd00::/64 10.244.0.0/16",
		"":                                      "--cluster-cidr=: routes need the cluster CIDR, or --configure-cloud-routes=false: invalid CIDR[0]",
		"10.244.0.0":                            "invalid CIDR[0]",
		"10.244.0.0/16, fd00::/64":              "invalid CIDR[1]",
		"10.244.0.0/16,10.245.0.0/16":           "len of ClusterCIDRs==2 and they are not configured as dual stack",
		"10.244.0.0/16,fd00::/64,10.245.0.0/16": "length of clusterCIDRs is:3 more than max allowed of 2",
		"10.244.0.0/16,10.245.0.0/16,10.1.0.0/16": "len of ClusterCIDRs==3 and they are not configured as dual stack",
	} {
		got, err := ClusterCIDRs(value)
		var parts []string
		for _, cidr := range got {
			parts = append(parts, cidr.String())
		}
		if text := strings.Join(parts, " "); err == nil && text != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s %v, want %s", value, text, err, want)
		}
	}
}
