package explore

import (
	"fmt"
	"slices"
	"time"
)

// tokenOf is a secret that asks for a token.
func tokenOf(d *Draw, name string) Object {
	o := Object{"apiVersion": "v1", "kind": "Secret", "metadata": d.Metadata(name), "type": "kubernetes.io/service-account-token"}
	annotations := Object{"kubernetes.io/service-account.name": One(d, "builder", "builder", "default", "nobody", "")}
	if d.Chance(30) {
		annotations["kubernetes.io/service-account.uid"] = One(d, "$(serviceaccounts/builder .metadata.uid)", "00000000-0000-0000-0000-000000000000")
	}
	Set(o, []string{"metadata", "annotations"}, annotations)
	if d.Chance(30) {
		Set(o, []string{"metadata", "labels"}, One(d, Object{"kubernetes.io/legacy-token-last-used": "2020-01-01"}, Object{"kubernetes.io/legacy-token-invalid-since": "2020-01-01"},
			Object{"kubernetes.io/legacy-token-invalid-since": "2999-01-01", "kubernetes.io/legacy-token-last-used": "2998-01-01"}, Object{"kubernetes.io/legacy-token-invalid-since": "soon"}))
	}
	if d.Chance(20) {
		o["data"] = One(d, Object{"token": "eA=="}, Object{"ca.crt": "eA=="}, Object{"namespace": "eA=="}, Object{"other": "eA=="})
	}
	if d.Chance(10) {
		o["immutable"] = true
	}
	return o
}

// bootstrapToken is a token that nodes join with.
func bootstrapToken(d *Draw, id string) Object {
	o := Object{"apiVersion": "v1", "kind": "Secret", "metadata": Object{"name": "bootstrap-token-" + id, "namespace": "kube-system"}, "type": "bootstrap.kubernetes.io/token"}
	data := Object{"token-id": id, "token-secret": "0123456789abcdef"}
	if d.Chance(75) {
		data["usage-bootstrap-signing"] = One(d, "true", "true", "false", "yes")
	}
	if d.Chance(60) {
		data["expiration"] = One(d, "2099-01-01T00:00:00Z", "2001-01-01T00:00:00Z", "soon", "", "2099-01-01T00:00:00+02:00", "2001-01-01")
	}
	if d.Chance(10) {
		data["token-id"] = One(d, "other1", "x", "")
	}
	if d.Chance(10) {
		data["token-secret"] = One(d, "", "short")
	}
	if d.Chance(10) {
		Set(o, []string{"metadata", "finalizers"}, []any{"x.example/hold"})
	}
	if d.Chance(15) {
		o["immutable"] = true
	}
	o["stringData"] = data
	return o
}

var signers = []string{"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client", "kubernetes.io/legacy-unknown", "x.example/signer"}

func certificateRequest(d *Draw, name string) Object {
	spec := Object{"signerName": One(d, signers...), "usages": One(d,
		[]any{"digital signature", "key encipherment", "client auth"}, []any{"digital signature", "client auth"}, []any{"digital signature", "key encipherment", "server auth"}, []any{"client auth"}, []any{"any"}),
		"request": One(d, "$CSR(O=system:nodes CN=system:node:a)", "$CSR(O=system:nodes CN=system:node:a DNS=a.example)", "$CSR(O=system:nodes CN=system:node:b)", "$CSR(O=devs CN=jane)",
			"$CSR(O=system:nodes CN=jane)", "$CSR(O=system:nodes CN=system:node:a DNS=a.example IP=10.0.0.1)", "$CSR(O=system:masters CN=jane)")}
	if d.Chance(30) {
		spec["expirationSeconds"] = One(d, 600, 3600, 315360000)
	}
	return Object{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": d.Metadata("$NS-" + name), "spec": spec}
}

// granted allows the users of a script to ask for certificates, and some to get them.
func granted(d *Draw) (ask, get Object) {
	bind := func(name, role string) Object {
		return Object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": Object{"name": "$NS-" + name},
			"roleRef":  Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
			"subjects": []any{Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:node:a"}, Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "joiner"}}}
	}
	return bind("ask", "system:node-bootstrapper"), bind("get", "system:certificates.k8s.io:certificatesigningrequests:"+One(d, "selfnodeclient", "nodeclient"))
}

func init() {
	tokens, requests := []string{"one", "two"}, []string{"x", "y"}
	ids := []string{"expl01", "expl02"}
	register(&Family{
		Name: "token",
		Start: []string{"serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller", "bootstrap-signer-controller", "token-cleaner-controller",
			"certificatesigningrequest-approving-controller", "certificatesigningrequest-signing-controller"},
		Compared: []string{"serviceaccounts", "secrets", "configmaps", "certificatesigningrequests", "secrets/kube-system/bootstrap-token-*", "configmaps/kube-public/cluster-info"},
		Quiet:    600 * time.Millisecond,
		Begin: func(d *Draw, s *Script) {
			s.Objects["builder.yaml"] = Object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": d.Metadata("builder"), "secrets": One(d, []any{}, []any{Object{"name": "one"}}, []any{Object{"name": "gone"}})}
			for _, name := range tokens {
				s.Objects[name+".yaml"] = tokenOf(d, name)
			}
			for _, id := range ids {
				s.Objects[id+".yaml"] = bootstrapToken(d, id)
			}
			s.Objects["info.yaml"] = Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": Object{"name": "cluster-info", "namespace": "kube-public", "annotations": Object{"story": "$NS"}},
				"data": One(d, Object{"kubeconfig": "a cluster"}, Object{"kubeconfig": "a cluster", "jws-kubeconfig-expl01": "forged", "jws-kubeconfig-gone01": "old"}, Object{"other": "kept"})}
			for _, name := range requests {
				s.Objects[name+".yaml"] = certificateRequest(d, name)
			}
			s.Objects["ask.yaml"], s.Objects["get.yaml"] = granted(d)
			s.Steps = append(s.Steps, One(d, "apply builder.yaml\napply one.yaml", "apply one.yaml\napply builder.yaml", "apply info.yaml\napply expl01.yaml", "apply ask.yaml\napply get.yaml"))
		},
		Moves: slices.Concat([]Move{
			{5, About(append(tokens, "builder"), "apply %s.yaml")},
			{4, About(tokens, "delete secrets/%s", "delete secrets/%s now", `patch secrets/%s {"data":{"token":null}}`, `patch secrets/%s {"data":{"token":"eA=="}}`, `patch secrets/%s {"data":{"ca.crt":null}}`,
				`patch secrets/%s {"data":{"namespace":"eA=="}}`, "annotate secrets/%s kubernetes.io/service-account.name=default", "annotate secrets/%s kubernetes.io/service-account.uid-",
				"annotate secrets/%s kubernetes.io/service-account.name-", `patch secrets/%s {"metadata":{"finalizers":null}}`, "annotate secrets/%s kubernetes.io/service-account.uid=00000000-0000-0000-0000-000000000000")},
			{3, Line("delete serviceaccounts/builder", "delete serviceaccounts/builder\napply builder.yaml", "delete serviceaccounts/default", `patch serviceaccounts/builder {"secrets":[{"name":"one"},{"name":"two"}]}`,
				`patch serviceaccounts/default {"secrets":[{"name":"one"}]}`, `patch serviceaccounts/builder {"metadata":{"finalizers":null}}`, `patch serviceaccounts/builder {"automountServiceAccountToken":false}`)},
			{2, Line("delete configmaps/kube-root-ca.crt", `patch configmaps/kube-root-ca.crt {"data":{"ca.crt":"x"}}`, `patch configmaps/kube-root-ca.crt {"data":{"other":"x"}}`,
				"annotate configmaps/kube-root-ca.crt kubernetes.io/description-", `patch configmaps/kube-root-ca.crt {"immutable":true}`)},
			{5, About(append(ids, "info"), "apply %s.yaml")},
			{4, About(ids, "delete secrets/kube-system/bootstrap-token-%s", `patch secrets/kube-system/bootstrap-token-%s {"stringData":{"expiration":"2001-01-01T00:00:00Z"}}`,
				`patch secrets/kube-system/bootstrap-token-%s {"stringData":{"expiration":"2099-01-01T00:00:00Z"}}`, `patch secrets/kube-system/bootstrap-token-%s {"stringData":{"usage-bootstrap-signing":"false"}}`,
				`patch secrets/kube-system/bootstrap-token-%s {"stringData":{"token-secret":"fedcba9876543210"}}`, `patch secrets/kube-system/bootstrap-token-%s {"metadata":{"finalizers":null}}`)},
			{3, Line(`patch configmaps/kube-public/cluster-info {"data":{"kubeconfig":"another"}}`, `patch configmaps/kube-public/cluster-info {"data":{"kubeconfig":null}}`, `patch configmaps/kube-public/cluster-info {"data":{"jws-kubeconfig-expl01":"x"}}`,
				`patch configmaps/kube-public/cluster-info {"data":{"jws-kubeconfig-zzzzzz":"x"}}`, "delete configmaps/kube-public/cluster-info", `patch configmaps/kube-public/cluster-info {"immutable":true}`)},
			{5, About(requests, "apply ask.yaml\napply %s.yaml as system:node:a system:nodes system:authenticated", "apply ask.yaml\napply %s.yaml as joiner system:bootstrappers system:authenticated", "apply %s.yaml")},
			{5, func(d *Draw, _ *Script) []string {
				condition := Object{"type": One(d, "Approved", "Approved", "Denied"), "status": "True", "reason": "Story"}
				return []string{fmt.Sprintf("approval certificatesigningrequests/$NS-%s %s", One(d, requests...), jsonOf(Object{"conditions": []any{condition}}))}
			}},
			{2, About(requests, "delete certificatesigningrequests/$NS-%s", `status certificatesigningrequests/$NS-%s {"conditions":[{"type":"Failed","status":"True","reason":"Story"}]}`,
				`status certificatesigningrequests/$NS-%s {"certificate":null}`)},
			{1, Line("apply get.yaml", "delete clusterrolebindings/$NS-get")},
		}, Disturbances("secrets", "serviceaccounts", "configmaps")),
	})
}
