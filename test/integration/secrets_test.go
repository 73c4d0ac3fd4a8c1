package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/why"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// markedSecrets has Secrets of every type, in order and not, by namespace and name.
func markedSecrets() map[string]*corev1.Secret {
	all, n := map[string]*corev1.Secret{}, 0
	value := func() string { n++; return marked(n) }
	add := func(name string, of corev1.SecretType, data map[string]string) *corev1.Secret {
		namespace, name, _ := strings.Cut(name, "/")
		s := &corev1.Secret{Type: of, StringData: data, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{
			"example.com/note": value(), corev1.LastAppliedConfigAnnotation: `{"stringData":{"key":"` + value() + `"}}`}}}
		all[namespace+"/"+name] = s
		return s
	}
	token := func(id string, more map[string]string) {
		data := map[string]string{"token-id": id, "token-secret": value(), "usage-bootstrap-signing": "true", "usage-bootstrap-authentication": value(), "description": value()}
		maps.Copy(data, more)
		add("kube-system/bootstrap-token-"+id, corev1.SecretTypeBootstrapToken, data)
	}
	token("signs0", map[string]string{"expiration": time.Now().Add(time.Hour).Format(time.RFC3339)})
	token("ended0", map[string]string{"expiration": time.Now().Add(-time.Hour).Format(time.RFC3339)})
	token("badend", map[string]string{"expiration": value()})
	token("badids", map[string]string{"token-id": value()})
	token("badset", map[string]string{"usage-bootstrap-signing": value()})
	add("kube-system/bootstrap-token-badname", corev1.SecretTypeBootstrapToken, map[string]string{"token-secret": value(), "expiration": value()})
	add("default/tls", corev1.SecretTypeTLS, map[string]string{"tls.crt": value(), "tls.key": value()})
	add("default/opaque", corev1.SecretTypeOpaque, map[string]string{"key": value(), "more": "before " + value()})
	add("default/docker", corev1.SecretTypeDockerConfigJson, map[string]string{".dockerconfigjson": `{"auths":{"r.example.com":{"auth":"` + value() + `"}}}`})
	add("default/basic", corev1.SecretTypeBasicAuth, map[string]string{"username": value(), "password": value()})
	add("default/ssh", corev1.SecretTypeSSHAuth, map[string]string{"ssh-privatekey": value()})
	add("default/chart", "helm.sh/release.v1", map[string]string{"release": value()})
	for name, account := range map[string]string{"wrong": "default", "fixed": "default", "empty": "default", "nobodys": "nobody"} {
		s := add("default/"+name, corev1.SecretTypeServiceAccountToken, map[string]string{"token": value(), "ca.crt": value(), "namespace": value()})
		s.Annotations[corev1.ServiceAccountNameKey] = account
		s.Immutable = ptr.To(name == "fixed")
		if name == "empty" {
			delete(s.StringData, "token")
		}
	}
	orphan := add("default/orphan", corev1.SecretTypeOpaque, map[string]string{"key": value()})
	orphan.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "gone"}}
	add("leaving/stays", corev1.SecretTypeOpaque, map[string]string{"key": value()}).Finalizers = []string{"example.com/stays"}
	return all
}

// TestAskingWhyShowsNoValueOfASecret has controllers read, write, refuse and delete marked
// Secrets, at the log level up to which nothing of them may be seen, and looks everywhere.
func TestAskingWhyShowsNoValueOfASecret(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	secrets := markedSecrets()
	prepare(t, client, secrets)
	spans, address := startReceiver(t)
	args := []string{"--v=7", "--cluster-name=" + open, "--controllers=*,bootstrap-signer-controller,token-cleaner-controller"}
	m := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: append(args, "--concurrent-serviceaccount-token-syncs=2", tracingTo(t, address))})
	beside := startShadow(t, cp, client, args...)
	// Names of what fails are in events, on pages and in the log.
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), harness.Deployment(open, 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "leaving", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 2*patient, func(ctx context.Context) error { return worked(ctx, client, m) })

	hidden := []string{mark}
	all, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all.Items {
		if made := s.Data[corev1.ServiceAccountTokenKey]; len(made) > 100 { // a controller has made it
			hidden = append(hidden, string(made[len(made)-60:]))
		}
	}
	if len(hidden) < 2 {
		t.Error("no token was made")
	}
	places := everywhere(t, client, m, secrets)
	ofShadow(t, places, beside, secrets)
	harness.Eventually(t, patient, func(context.Context) error {
		if places["spans"] = spans.text(); !shows(places["spans"], open) {
			return errors.New("no span is about the Deployment")
		}
		return nil
	})
	for name, text := range places {
		for _, value := range hidden {
			if shows(text, value) {
				t.Errorf("%s shows a value of a Secret:\n%s", name, around(text, value))
			}
		}
	}
	if len(places) < 200 {
		t.Errorf("only %d places were looked at", len(places))
	}
	for _, name := range []string{"log", "shadow log", "shadow /configz", "events", "/configz", "/flagz", whyOf("deployment", "default/"+open), "page " + whyOf("deployment", "default/"+open),
		"/debug/controllers/deployment-controller?key=default%2F" + open, "/debug/controllers/replicaset-controller"} {
		if !shows(places[name], open) {
			t.Errorf("%s does not show a name that is there: %s", name, places[name][:min(len(places[name]), 500)])
		}
	}
	if !strings.Contains(places["/metrics"], "workqueue_adds_total") {
		t.Error("/metrics has no metrics")
	}
}

// prepare makes the Secrets and what they are for.
func prepare(t *testing.T, client kubernetes.Interface, secrets map[string]*corev1.Secret) {
	t.Helper()
	create(t, client.CoreV1().Namespaces().Create, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leaving"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-public"}})
	create(t, client.CoreV1().ServiceAccounts("default").Create, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}})
	create(t, client.CoreV1().ConfigMaps("kube-public").Create, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-info"}, Data: map[string]string{"kubeconfig": "a cluster"}})
	for _, key := range slices.Sorted(maps.Keys(secrets)) {
		create(t, client.CoreV1().Secrets(secrets[key].Namespace).Create, secrets[key])
	}
	create(t, client.CoreV1().ResourceQuotas("default").Create, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "some"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceSecrets: resource.MustParse("50"), corev1.ResourcePods: resource.MustParse("1")}}})
	if err := client.CoreV1().ServiceAccounts("default").Delete(t.Context(), "nobody", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// worked returns what the controllers have not done yet with the Secrets.
func worked(ctx context.Context, client kubernetes.Interface, m *harness.Manager) error {
	info, err := client.CoreV1().ConfigMaps("kube-public").Get(ctx, "cluster-info", metav1.GetOptions{})
	if err != nil || info.Data["jws-kubeconfig-signs0"] == "" {
		return fmt.Errorf("cluster-info is not signed: %v, %w", info.Data, err)
	}
	for _, name := range []string{"kube-system/bootstrap-token-ended0", "default/nobodys", "default/orphan"} {
		namespace, name, _ := strings.Cut(name, "/")
		if _, err := client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("secret %s is still there: %w", name, err)
		}
	}
	for name, key := range map[string]string{"wrong": "ca.crt", "empty": "token"} {
		s, err := client.CoreV1().Secrets("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil || len(s.Data[key]) == 0 || strings.Contains(string(s.Data[key]), mark) {
			return fmt.Errorf("the %s of secret %s is not made: %w", key, name, err)
		}
	}
	for path, says := range map[string]string{
		"/debug/controllers/serviceaccount-token-controller?key=default%2Ffixed":               "failures",
		whyOf("namespace", "/leaving"):                                                         "example.com/stays",
		whyOf("deployment", "default/"+open):                                                   "exceeded quota",
		"/debug/controllers/token-cleaner-controller?key=kube-system%2Fbootstrap-token-badids": "lastSync",
	} {
		if _, body, err := m.GetAsAdmin(path); err != nil || !strings.Contains(body, says) {
			return fmt.Errorf("%s is not in %s: %s %w", says, path, body, err)
		}
	}
	return nil
}

// whyOf is the path of a question about namespace/name.
func whyOf(kind, key string) string {
	namespace, name, _ := strings.Cut(key, "/")
	return "/debug/why?" + url.Values{"kind": {kind}, "namespace": {namespace}, "name": {name}}.Encode()
}

// everywhere is all that somebody without a right to read Secrets may read.
func everywhere(t *testing.T, client kubernetes.Interface, m *harness.Manager, secrets map[string]*corev1.Secret) map[string]string {
	t.Helper()
	places := map[string]string{}
	paths := []string{"/metrics", "/metrics/slis", "/configz", "/flagz", "/statusz", "/healthz?verbose", "/readyz?verbose", "/livez?verbose", "/debug/controllers"}
	var list []struct{ Name string }
	if err := json.Unmarshal([]byte(asked(t, m, "/debug/controllers", "")), &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		paths = append(paths, "/debug/controllers/"+c.Name)
		for key := range secrets {
			paths = append(paths, "/debug/controllers/"+c.Name+"?key="+url.QueryEscape(key))
		}
	}
	paths = append(paths, "/debug/controllers/garbage-collector-controller/graph", "/debug/controllers/deployment-controller?key=default%2F"+open)
	questions := []string{whyOf("deployment", "default/"+open), whyOf("namespace", "/leaving"), whyOf("resourcequota", "default/some"), whyOf("configmap", "kube-public/cluster-info"), whyOf("gizmo", "a/b")}
	for key := range secrets {
		questions = append(questions, whyOf("secret", key))
	}
	var p why.Problem
	if err := json.Unmarshal([]byte(asked(t, m, whyOf("gizmo", "a/b"), "")), &p); err != nil || len(p.Kinds) < 40 {
		t.Fatalf("%d kinds can be asked for, %v", len(p.Kinds), err)
	}
	for _, kind := range p.Kinds {
		questions = append(questions, whyOf(kind, "default/opaque"))
	}
	for _, path := range append(paths, questions...) {
		places[path] = asked(t, m, path, "")
	}
	for _, question := range questions {
		places["page "+question] = asked(t, m, question, browser)
	}
	for name, path := range map[string]string{"events": "/api/v1/events", "new events": "/apis/events.k8s.io/v1/events", "namespaces": "/api/v1/namespaces",
		"config maps": "/api/v1/configmaps", "quotas": "/api/v1/resourcequotas", "leases": "/apis/coordination.k8s.io/v1/leases"} {
		raw, err := client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		places[name] = string(raw)
	}
	places["log"] = m.Log(0)
	return places
}

func asked(t *testing.T, m *harness.Manager, path, accept string) string {
	t.Helper()
	code, body, err := m.GetFormAsAdmin(path, accept)
	if err != nil || code != http.StatusOK && code != http.StatusNotFound && code != http.StatusBadRequest {
		t.Fatalf("%s: %d %s %v", path, code, body, err)
	}
	return body
}

// ofShadow adds what a shadow beside the manager shows.
func ofShadow(t *testing.T, places map[string]string, m *harness.Manager, secrets map[string]*corev1.Secret) {
	t.Helper()
	harness.Eventually(t, patient, func(context.Context) error {
		report, err := reportOf(m)
		if err == nil && report.Agreed+report.Extra+report.Open == 0 {
			err = errors.New("the shadow would have written nothing")
		}
		return err
	})
	paths := []string{"/debug/shadow", "/metrics", "/configz", "/flagz", "/statusz", "/readyz?verbose", "/debug/controllers"}
	for key := range secrets {
		paths = append(paths, whyOf("secret", key), "/debug/controllers/garbage-collector-controller?key="+url.QueryEscape(key), "/debug/controllers/token-cleaner-controller?key="+url.QueryEscape(key))
	}
	for _, path := range paths {
		places["shadow "+path] = asked(t, m, path, "")
	}
	places["shadow log"] = m.Log(0)
}
