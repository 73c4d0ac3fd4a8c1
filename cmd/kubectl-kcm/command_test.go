package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/kube-kcm/kube-controller-manager/pkg/why"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// blocked is an answer about a Deployment under a quota.
var blocked = why.Answer{
	APIVersion: why.APIVersion, Kind: why.AnswerKind, At: noon,
	Asked: why.Asked{Kind: "Deployment", Namespace: "shop", Name: "web"}, Verdict: why.Blocked,
	Sentence: "Deployment shop/web is blocked at ReplicaSet web-1: 2 of 5 pods exist.",
	Process:  why.Process{Identity: "node-a_1", Leading: true, Since: noon.Add(-time.Hour)},
	Objects: []why.Object{
		{Kind: "Deployment", Namespace: "shop", Name: "web", Verdict: why.Progressing, Sentence: "2 of 5 replicas are available", Facts: []string{"2 of 5 replicas ready"},
			Controllers: []why.Controller{{Name: "deployment-controller", Why: "nothing to do"}}},
		{Kind: "ReplicaSet", Namespace: "shop", Name: "web-1", Depth: 1, Verdict: why.Blocked, Sentence: "2 of 5 pods exist",
			Controllers: []why.Controller{{Name: "replicaset-controller", Why: "3 pods missing of 5", Failures: 4, LastError: "create pods: exceeded quota", NextTry: noon.Add(8 * time.Second)}, {Name: "another", Why: "of no interest"}}},
		{Kind: "Pod", Namespace: "shop", Name: "web-1-a", Depth: 2, Verdict: why.Complete, Sentence: "it is ready"},
	},
	LeftOut: []why.LeftOut{{Owner: why.Owner{Kind: "ReplicaSet", Name: "web-1"}, Kind: "Pod", Count: 1, Verdict: why.Complete}},
}

const blockedText = `Deployment shop/web is blocked at ReplicaSet web-1: 2 of 5 pods exist.

progressing  Deployment web: 2 of 5 replicas are available
  2 of 5 replicas ready
  deployment-controller: nothing to do
  blocked      ReplicaSet web-1: 2 of 5 pods exist
    replicaset-controller: 3 pods missing of 5 (failed 4 times, tries again in 8s)
      last error: create pods: exceeded quota
    and 1 more of kind Pod, the worst of them complete
    complete     Pod web-1-a: it is ready

Answered by the manager node-a_1, which has looked for 60m.
`

// manager answers each question with this status, type and value, if it comes with the token "t".
func manager(t *testing.T, status int, media string, value any) (address, authority string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", media)
		switch {
		case req.Header.Get("Authorization") != "Bearer t":
			w.WriteHeader(http.StatusUnauthorized)
		case req.URL.Path != "/debug/why" || req.URL.Query().Get("kind") != "deployment" || req.URL.Query().Get("namespace") != "shop" ||
			req.URL.Query().Get("name") != "web" || req.Header.Get("Accept") != "application/json":
			t.Errorf("asked for %s, %v", req.URL, req.Header)
		default:
			w.WriteHeader(status)
			if words, ok := value.(string); ok {
				fmt.Fprint(w, words)
			} else if err := json.NewEncoder(w).Encode(value); err != nil {
				t.Error(err)
			}
		}
	}))
	t.Cleanup(server.Close)
	authority = filepath.Join(t.TempDir(), "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(authority, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	return server.URL, authority
}

func play(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var said, complained bytes.Buffer
	code = run(context.Background(), args, &said, &complained)
	return code, said.String(), complained.String()
}

func TestAnAnswerIsPrinted(t *testing.T) {
	address, authority := manager(t, http.StatusOK, "application/json", blocked)
	args := []string{"why", "deployment/web", "-n", "shop", "--server", address, "--token", "t", "--certificate-authority", authority}
	if code, out, errOut := play(t, args...); code != answered || out != blockedText || errOut != "" {
		t.Errorf("%d, %s\n%s\nwant\n%s", code, errOut, out, blockedText)
	}
	code, out, _ := play(t, append(args, "-o", "json")...)
	var got why.Answer
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != answered || got.Sentence != blocked.Sentence || len(got.Objects) != 3 {
		t.Errorf("%d, %v: %s", code, err, out)
	}
	if code, out, errOut := play(t, "why", "deployment", "web", "-n", "shop", "--server", address, "--token", "t", "--insecure-skip-tls-verify"); code != answered || out != blockedText {
		t.Errorf("in two words: %d, %s", code, errOut)
	}
}

func TestWhatAControllerDoesIsPrinted(t *testing.T) {
	soon := noon.Add(8 * time.Second)
	for name, tc := range map[string]struct {
		c     why.Controller
		below bool // it is printed of an object that was not asked for
		says  string
	}{
		"all is well":     {why.Controller{Why: "nothing to do"}, false, "c: nothing to do\n"},
		"it looks again":  {why.Controller{Why: "nothing to do", NextLook: soon}, false, "c: nothing to do (looks again in 8s)\n"},
		"it failed once":  {why.Controller{Why: "3 missing", Failures: 1, LastError: "no"}, true, "c: 3 missing (failed once, tries again now)\n  last error: no\n"},
		"it fails":        {why.Controller{Why: "3 missing", Failures: 4, LastError: "no\n way", NextTry: soon}, true, "c: 3 missing (failed 4 times, tries again in 8s)\n  last error: no way\n"},
		"it has given up": {why.Controller{Why: "a bad spec", Failures: 1, LastError: "bad", GaveUp: true}, true, "c: a bad spec (failed, and is not tried again until the object changes)\n  last error: bad\n"},
		"it is held back": {why.Controller{Why: "3 too many", Braked: "60 a minute", NextTry: soon}, true, "c: 3 too many (waits for its turn, tries again in 8s)\n  held back: 60 a minute\n"},
		"its caches are behind": {why.Controller{Why: "3 missing", WaitingFor: []string{"pods at 7", "nodes at 8"}}, true,
			"c: 3 missing\n  waits for its caches: pods at 7, nodes at 8\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			tc.c.Name = "c"
			printController(&out, "", tc.c, noon)
			if out.String() != tc.says || inTrouble(tc.c) != tc.below {
				t.Errorf("in trouble: %t\n%s\nwant\n%s", inTrouble(tc.c), out.String(), tc.says)
			}
		})
	}
}

// What users have written cannot command the terminal of who asks.
func TestControlCharactersAreShownAndNotObeyed(t *testing.T) {
	const evil = "x\x1b[2J\r\n\u009b"
	a := blocked
	a.Sentence = evil
	a.Objects = slices.Clone(a.Objects)
	a.Objects[0].Name, a.Objects[0].Sentence, a.Objects[0].Facts = evil, evil, []string{evil}
	a.Objects[0].Controllers = []why.Controller{{Name: "c", Why: evil, Failures: 1, LastError: evil}}
	var got strings.Builder
	if err := printText(&got, &a); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(got.String(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
		t.Errorf("printed %q", got.String())
	}
	_, _, errOut := play(t, "why", "deployment/web", "--"+evil)
	if strings.ContainsFunc(errOut, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
		t.Errorf("complained %q", errOut)
	}
}

func TestWhoAnswersIsPrinted(t *testing.T) {
	for name, tc := range map[string]struct {
		by   why.Process
		says string
	}{
		"the leader":      {why.Process{Identity: "node-a_1", Leading: true, Since: noon.Add(-time.Hour)}, "\nAnswered by the manager node-a_1, which has looked for 60m.\n"},
		"without a lease": {why.Process{Leading: true}, "\nAnswered by the manager.\n"},
		"a shadow":        {why.Process{Shadow: true, Since: noon.Add(-time.Hour)}, "\nAnswered by a shadow (it writes nothing, and says what its controllers would do), which has looked for 60m.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := printText(&out, &why.Answer{At: noon, Process: tc.by}); err != nil || !strings.HasSuffix(out.String(), tc.says) {
				t.Errorf("%v, %s", err, out.String())
			}
		})
	}
}

func TestNoAnswerSaysWhy(t *testing.T) {
	problem := func(code int, message string) why.Problem {
		return why.Problem{APIVersion: why.APIVersion, Kind: why.ProblemKind, Code: code, Message: message}
	}
	for name, tc := range map[string]struct {
		status int
		media  string
		value  any
		code   int
		says   string
	}{
		"no such kind":        {404, "application/json", problem(404, `the API server serves no kind "deployment"`), badQuestion, `error: the API server serves no kind "deployment"`},
		"a bad question":      {400, "application/json", problem(400, "it is in a namespace"), badQuestion, "error: it is in a namespace"},
		"a standby":           {503, "application/json", problem(503, "ask the leader, node-b_7"), failed, "error: ask the leader, node-b_7"},
		"not allowed":         {403, "application/json", "Forbidden: no get on /debug/why", failed, "the ClusterRole kcm-ask of build/rbac/why.yaml allows it: Forbidden"},
		"another program":     {404, "text/plain; charset=utf-8", "404 page not found", failed, "it is another program, or an older version"},
		"a proxy":             {502, "text/html", "bad gateway", failed, `the manager answers 502 Bad Gateway, in "text/html": bad gateway`},
		"a later shape":       {200, "application/json", why.Answer{APIVersion: "debug.kube-kcm.github.io/v9"}, failed, `"debug.kube-kcm.github.io/v9", and this version of the plugin reads "debug.kube-kcm.github.io/v1"`},
		"something else":      {200, "application/json", "]", failed, "read the answer"},
		"what is no question": {200, "application/json", map[string]any{"apiVersion": why.APIVersion, "objects": 7}, failed, "read the answer"},
	} {
		t.Run(name, func(t *testing.T) {
			address, authority := manager(t, tc.status, tc.media, tc.value)
			code, out, errOut := play(t, "why", "deployment/web", "-n", "shop", "--server", address, "--token", "t", "--certificate-authority", authority)
			if code != tc.code || out != "" || !strings.Contains(errOut, tc.says) || strings.Count(errOut, "\n") != 1 {
				t.Errorf("%d, %q, want %d and %q", code, errOut, tc.code, tc.says)
			}
		})
	}
}

func TestTheServerIsCheckedAndTheTokenToo(t *testing.T) {
	address, authority := manager(t, http.StatusOK, "application/json", blocked)
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"no authority":        {[]string{"--token", "t"}, "certificate"},
		"another name":        {[]string{"--token", "t", "--certificate-authority", authority, "--tls-server-name", "other.example.net"}, "other.example.net"},
		"another token":       {[]string{"--token", "x", "--certificate-authority", authority}, "the manager does not know these credentials"},
		"no such file":        {[]string{"--token", "t", "--certificate-authority", "/nonexistent/ca.crt"}, "/nonexistent/ca.crt"},
		"nobody listens":      {[]string{"--token", "t", "--server", "https://127.0.0.1:1", "--insecure-skip-tls-verify"}, "connection refused"},
		"no token, no config": {nil, "read the kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := play(t, append([]string{"why", "deployment/web", "-n", "shop", "--server", address}, tc.args...)...)
			if code == answered || out != "" || !strings.Contains(errOut, tc.says) {
				t.Errorf("%d, %q, want %q", code, errOut, tc.says)
			}
		})
	}
}

func TestBadCommandLines(t *testing.T) {
	for line, says := range map[string]string{
		"why":                               "ask about one object, as KIND/NAME or KIND NAME",
		"why deployment":                    `and not about "deployment"`,
		"why deployment/":                   `and not about "deployment/"`,
		"why deployment/web/x":              `and not about "deployment/web/x"`,
		"why deployment web more":           `and not about "deployment web more"`,
		"why deployment/web -o yaml":        `--output is "yaml"`,
		"why deployment/web --nothing":      "unknown flag: --nothing",
		"why deployment/web --timeout=soon": `"soon"`,
		"why deployment/web --token t --server 127.0.0.1:1":    "it has to be an address such as https://127.0.0.1:10257",
		"why deployment/web --token t --server http://1.2.3.4": "it has to be an address such as https://127.0.0.1:10257",
		"why deployment/web":     "read the kubeconfig",
		"explain deployment/web": `unknown command "explain"`,
	} {
		code, out, errOut := play(t, strings.Fields(line)...)
		if code != badQuestion || out != "" || !strings.HasPrefix(errOut, "error: ") || !strings.Contains(errOut, says) {
			t.Errorf("%s: %d, %q, want %q", line, code, errOut, says)
		}
	}
	if code, out, _ := play(t, "why", "--help"); code != answered || !strings.Contains(out, "kubectl kcm why KIND/NAME") {
		t.Errorf("help: %d, %s", code, out)
	}
}
