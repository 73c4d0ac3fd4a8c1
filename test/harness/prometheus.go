package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Prometheus is a server that scrapes managers and evaluates rules.
type Prometheus struct {
	process *Process
	url     string
}

// Target is a manager to scrape, and the value of the label cluster of its metrics.
type Target struct {
	Manager *Manager
	Cluster string
}

// StartPrometheus runs a server with files of rules that looks at the targets every second.
// The test's end stops it.
func StartPrometheus(t testing.TB, rules []string, targets ...Target) *Prometheus {
	t.Helper()
	tools, err := FindTools()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(tools.Dir, "prometheus")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("%v (make tools-monitoring builds it)", err)
	}
	dir := t.TempDir()
	config := map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files": rules,
		"scrape_configs": []any{map[string]any{
			"job_name": "kube-controller-manager", "scheme": "https",
			"tls_config": map[string]any{"insecure_skip_verify": true}, "static_configs": staticTargets(targets),
		}},
	}
	content, err := json.Marshal(config) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Prometheus{}
	if _, err := onFreePort(func() (string, error) { return "", p.start(binary, file, dir) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.process.Kill)
	return p
}

func staticTargets(targets []Target) (all []any) {
	for _, target := range targets {
		all = append(all, map[string]any{
			"targets": []string{strings.TrimPrefix(target.Manager.URL(), "https://")}, "labels": map[string]string{"cluster": target.Cluster}})
	}
	return all
}

func (p *Prometheus) start(binary, config, dir string) (err error) {
	port, err := freePort()
	if err != nil {
		return err
	}
	p.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	p.process, err = startProcess("prometheus", binary, []string{
		"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"),
		fmt.Sprintf("--web.listen-address=127.0.0.1:%d", port), "--log.level=warn",
	}, filepath.Join(dir, "prometheus.log"))
	if err != nil {
		return err
	}
	if err := p.process.poll(60*time.Second, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return p.Ask(ctx, "query", url.Values{"query": {"1"}}, nil)
	}); err != nil {
		p.process.Kill()
		return err
	}
	return nil
}

// Ask asks the API of Prometheus and decodes the data of its answer; a nil one drops them.
func (p *Prometheus) Ask(ctx context.Context, what string, parameters url.Values, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/"+what+"?"+parameters.Encode(), nil)
	if err != nil {
		return fmt.Errorf("ask prometheus for %s: %w", what, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask prometheus for %s: %w", what, err)
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("ask prometheus for %s: %w", what, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("ask prometheus for %s %v: %s", what, parameters, answer.Error)
	}
	return nil
}

// Series is one of those that a query returns, by its labels.
type Series map[string]string

// Query evaluates an expression now.
func (p *Prometheus) Query(ctx context.Context, expression string) ([]Series, error) {
	var data struct {
		Result []struct{ Metric Series }
	}
	if err := p.Ask(ctx, "query", url.Values{"query": {expression}}, &data); err != nil {
		return nil, err
	}
	all := make([]Series, 0, len(data.Result))
	for _, r := range data.Result {
		all = append(all, r.Metric)
	}
	return all, nil
}
