package app

import (
	"bytes"
	"crypto/tls"
	"encoding/csv"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/component-base/configz"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// endpoint is a row of the endpoint facts.
type endpoint struct {
	path, method, accept, contentType string
	served                            bool
}

// readEndpoints returns the rows that name a path to ask for.
func readEndpoints(t *testing.T) []endpoint {
	t.Helper()
	raw, err := os.ReadFile("testdata/http-endpoints.tsv")
	if err != nil {
		t.Fatal(err)
	}
	lines := csv.NewReader(bytes.NewReader(raw))
	lines.Comma, lines.LazyQuotes = '\t', true
	records, err := lines.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []endpoint
	for _, r := range records[1:] {
		if !strings.HasPrefix(r[0], "/") {
			continue
		}
		method, accept, _ := strings.Cut(r[1], " ")
		accept, _, _ = strings.Cut(strings.TrimPrefix(accept, "Accept "), " ")
		if method != http.MethodGet {
			accept = ""
		}
		contentType, _, _ := strings.Cut(r[4], " (")
		contentType, _, _ = strings.Cut(contentType, " for ")
		for path := range strings.SplitSeq(r[0], ", ") {
			path = strings.NewReplacer("{check}", "leaderElection", "{other controller}", "no-such-controller").Replace(path)
			rows = append(rows, endpoint{path, method, accept, contentType, strings.HasPrefix(r[2], "yes")})
		}
	}
	return rows
}

// ours are the paths where this program serves more than the facts say.
var ours = map[string]string{
	"/livez":  "text/plain; charset=utf-8",
	"/readyz": "text/plain; charset=utf-8",
}

func TestEndpointsAreAsInTheFacts(t *testing.T) {
	c := testConfig(t)
	if _, err := publishConfig(c); err != nil {
		t.Fatal(err)
	}
	defer configz.Delete(configzName)
	p := testProcess(t, c)
	p.debug.Set(names.GarbageCollectorController, debug.Started, "")
	p.debug.Handle(names.GarbageCollectorController, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/vnd.graphviz")
	}))
	handler := p.handler()
	for _, row := range readEndpoints(t) {
		t.Run(row.method+" "+row.path+" "+row.accept, func(t *testing.T) {
			if row.path == "/debug/pprof/profile" || row.path == "/debug/pprof/trace" {
				row.path += "?seconds=1"
			}
			body := ""
			if row.method == http.MethodPut {
				body = "0"
			}
			req := httptest.NewRequest(row.method, row.path, strings.NewReader(body))
			req.Header.Set("Authorization", "Bearer admin")
			req.Header.Set("Accept", strings.TrimPrefix(row.accept, "(or "))
			if row.accept == "" {
				req.Header.Del("Accept")
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			want := http.StatusOK
			contentType, more := ours[row.path]
			switch {
			case more:
				row.contentType = contentType
			case row.path == "/debug/pprof":
				want = http.StatusFound
			case !row.served:
				want = http.StatusNotFound
			}
			if w.Code != want {
				t.Fatalf("got %d %s, want %d", w.Code, w.Body, want)
			}
			got := w.Header().Get("Content-Type")
			if row.method == http.MethodDelete {
				got, _, _ = strings.Cut(got, ";") // the facts give no parameters here
			}
			if got != row.contentType {
				t.Errorf("got content type %q, want %q", got, row.contentType)
			}
			if got := w.Body.String(); want == http.StatusNotFound && row.path != "/debug/pprof/cmdline" && got != "404 page not found\n" {
				t.Errorf("got body %q", got)
			}
		})
	}
}

func TestStrangersAreRefusedBeforeThePathIsLookedUp(t *testing.T) {
	handler := testProcess(t, testConfig(t)).handler()
	for name, tc := range map[string]struct {
		path, token string
		code        int
		says        string
	}{
		"the anonymous user may see health":          {"/healthz", "", 200, "ok"},
		"but not one check of it":                    {"/healthz/leaderElection", "", 403, `cannot get path \"/healthz/leaderElection\"`},
		"nor metrics":                                {"/metrics", "", 403, `User \"system:anonymous\" cannot get path \"/metrics\"`},
		"nor a path that does not exist":             {"/no/such/path", "", 403, "forbidden"},
		"nor what controllers know":                  {"/debug/controllers/", "", 403, "forbidden"},
		"a bad token is not the same as no token":    {"/metrics", "Bearer nonsense", 401, "Unauthorized"},
		"an authorized user gets the path looked up": {"/no/such/path", "Bearer admin", 404, "404 page not found"},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodGet, tc.path, nil)
			if tc.token != "" {
				req.Header.Set("Authorization", tc.token)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, tc.code, tc.says)
			}
		})
	}
}

func TestProfilingCanBeSwitchedOff(t *testing.T) {
	c := testConfig(t)
	*c.ComponentConfig.Generic.Debugging.EnableProfiling = false
	paths := testProcess(t, c).endpoints()
	for _, path := range []string{"/debug/pprof/", "/debug/flags/v"} {
		w := httptest.NewRecorder()
		paths.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d", path, w.Code)
		}
	}
}

func TestAStandbyShowsWhatItWouldStart(t *testing.T) {
	p := testProcess(t, testConfig(t))
	showAll(p.debug, forLeadership)
	w := httptest.NewRecorder()
	p.endpoints().ServeHTTP(w, httptest.NewRequest(http.MethodGet, debugPrefix, nil))
	var list []debug.Controller
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != len(names.All()) {
		t.Errorf("%d controllers are listed, %d are known", len(list), len(names.All()))
	}
	for _, c := range list {
		if want := (debug.Controller{Name: c.Name, State: debug.Waiting, Why: "waits for leadership"}); c != want {
			t.Errorf("got %v, want %v", c, want)
		}
	}
}

// TestTheServingCertificateIsReloaded replaces the certificate files of a
// serving process and waits until new connections get the new certificate.
func TestTheServingCertificateIsReloaded(t *testing.T) {
	dir := t.TempDir()
	write := func(host string) []byte {
		t.Helper()
		cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for file, data := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
			if err := os.WriteFile(dir+"/new-"+file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(dir+"/new-"+file, dir+"/"+file); err != nil {
				t.Fatal(err)
			}
		}
		return cert
	}
	write("one.example")
	content, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving", dir+"/tls.crt", dir+"/tls.key")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := testConfig(t)
	c.SecureServing = &apiserver.SecureServingInfo{Listener: listener, Cert: content}
	stop, err := testProcess(t, c).serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	served := func() string {
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		return strings.Join(conn.ConnectionState().PeerCertificates[0].DNSNames, ",")
	}
	eventually(t, "the first certificate is served", func() bool { return served() == "one.example" })
	write("two.example")
	eventually(t, "the second certificate is served", func() bool { return served() == "two.example" })

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + listener.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); string(body) != "ok" || response.ProtoMajor != 2 {
		t.Errorf("got %q over %s", body, response.Proto)
	}
}

// TestOnlyWhatWaitsIsSaidToWaitForThePause holds that a controller that is skipped, or that
// runs in another term, keeps its reason.
func TestOnlyWhatWaitsIsSaidToWaitForThePause(t *testing.T) {
	p := testProcess(t, testConfig(t))
	showAll(p.debug, forLeadership)
	p.debug.Set("job-controller", debug.Skipped, "another component runs it")
	p.debug.Set("cronjob-controller", debug.Started, "")
	for _, next := range [][2]string{{forPause, forLeadership}, {forLeadership, forPause}} {
		showNext(p.debug, next[0], next[1])
		for name, want := range map[string]debug.Controller{
			"job-controller":     {State: debug.Skipped, Why: "another component runs it"},
			"cronjob-controller": {State: debug.Started}, "ttl-controller": {State: debug.Waiting, Why: next[0]},
		} {
			want.Name = name
			if got, _ := p.debug.Find(name); got != want {
				t.Errorf("it shows %+v, want %+v", got, want)
			}
		}
	}
}
