package image

import "os"

const (
	public = os.FileMode(0o644)
	keys   = os.FileMode(0o600)
	secret = os.FileMode(0o400)
)

// kubeadm is what it writes with its defaults.
var kubeadm = installation{
	name: "kubeadm", image: true,
	command: []string{
		"kube-controller-manager",
		"--allocate-node-cidrs=true",
		"--authentication-kubeconfig=/etc/kubernetes/controller-manager.conf",
		"--authorization-kubeconfig=/etc/kubernetes/controller-manager.conf",
		"--bind-address=127.0.0.1",
		"--client-ca-file=/etc/kubernetes/pki/ca.crt",
		"--cluster-cidr=10.244.0.0/16",
		"--cluster-name=kubernetes",
		"--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt",
		"--cluster-signing-key-file=/etc/kubernetes/pki/ca.key",
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--kubeconfig=/etc/kubernetes/controller-manager.conf",
		"--leader-elect=true",
		"--requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt",
		"--root-ca-file=/etc/kubernetes/pki/ca.crt",
		"--service-account-private-key-file=/etc/kubernetes/pki/sa.key",
		"--service-cluster-ip-range=10.96.0.0/12",
		"--use-service-account-credentials=true",
	},
	files: map[string]hostFile{
		"etc/kubernetes/controller-manager.conf": {"controller-manager.conf", keys},
		"etc/kubernetes/pki/ca.crt":              {"ca.crt", public},
		"etc/kubernetes/pki/ca.key":              {"ca.key", keys},
		"etc/kubernetes/pki/front-proxy-ca.crt":  {"front-proxy-ca.crt", public},
		"etc/kubernetes/pki/sa.key":              {"sa.key", keys},
	},
}

// installations are the command lines of known ways to run the original, with the files
// that they give it, which are root's.
var installations = []installation{
	kubeadm,
	// kubeadm with the gate RootlessControlPlane has the pod run as a user of its own, who
	// has the files.
	{name: "kubeadm, not as root", image: true, user: 2002, command: kubeadm.command, files: kubeadm.files},
	{
		name: "GCE, through go-runner", image: true, log: "var/log/kube-controller-manager.log",
		command: []string{
			"/go-runner", "--log-file=/var/log/kube-controller-manager.log", "--also-stdout=false", "--redirect-stderr=true",
			"/usr/local/bin/kube-controller-manager",
			"--use-service-account-credentials",
			"--cloud-provider=external",
			"--v=2",
			"--kubeconfig=/etc/srv/kubernetes/kube-controller-manager/kubeconfig",
			"--root-ca-file=/etc/srv/kubernetes/pki/ca-certificates.crt",
			"--service-account-private-key-file=/etc/srv/kubernetes/pki/serviceaccount.key",
			"--cluster-name=e2e",
			"--cluster-cidr=10.64.0.0/14",
			"--service-cluster-ip-range=10.0.0.0/16",
			"--allocate-node-cidrs=true",
			"--cluster-signing-cert-file=/etc/srv/kubernetes/pki/ca-certificates.crt",
			"--cluster-signing-key-file=/etc/srv/kubernetes/pki/ca.key",
			"--flex-volume-plugin-dir=/home/kubernetes/flexvolume",
			"--leader-elect=true",
		},
		files: map[string]hostFile{
			"etc/srv/kubernetes/kube-controller-manager/kubeconfig": {"controller-manager.conf", keys},
			"etc/srv/kubernetes/pki/ca-certificates.crt":            {"ca.crt", public},
			"etc/srv/kubernetes/pki/ca.key":                         {"ca.key", keys},
			"etc/srv/kubernetes/pki/serviceaccount.key":             {"sa.key", keys},
		},
	},
	{
		name: "kOps, through go-runner", image: true, log: "var/log/kube-controller-manager.log",
		command: []string{
			"/go-runner", "--log-file=/var/log/kube-controller-manager.log", "--also-stdout",
			"/usr/local/bin/kube-controller-manager",
			"--allocate-node-cidrs=true",
			"--attach-detach-reconcile-sync-period=1m0s",
			"--authentication-kubeconfig=/var/lib/kube-controller-manager/kubeconfig",
			"--authorization-kubeconfig=/var/lib/kube-controller-manager/kubeconfig",
			"--cloud-provider=external",
			"--cluster-cidr=100.96.0.0/11",
			"--cluster-name=minimal.example.com",
			"--cluster-signing-cert-file=/srv/kubernetes/kube-controller-manager/ca.crt",
			"--cluster-signing-key-file=/srv/kubernetes/kube-controller-manager/ca.key",
			"--configure-cloud-routes=false",
			"--flex-volume-plugin-dir=/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
			"--kubeconfig=/var/lib/kube-controller-manager/kubeconfig",
			"--leader-elect=true",
			"--root-ca-file=/srv/kubernetes/ca.crt",
			"--service-account-private-key-file=/srv/kubernetes/kube-controller-manager/service-account.key",
			"--tls-cert-file=/srv/kubernetes/kube-controller-manager/server.crt",
			"--tls-private-key-file=/srv/kubernetes/kube-controller-manager/server.key",
			"--use-service-account-credentials=true",
			"--v=2",
		},
		files: map[string]hostFile{
			"var/lib/kube-controller-manager/kubeconfig":                 {"controller-manager.conf", secret},
			"srv/kubernetes/ca.crt":                                      {"ca.crt", public},
			"srv/kubernetes/kube-controller-manager/ca.crt":              {"ca.crt", keys},
			"srv/kubernetes/kube-controller-manager/ca.key":              {"ca.key", keys},
			"srv/kubernetes/kube-controller-manager/service-account.key": {"sa.key", keys},
			"srv/kubernetes/kube-controller-manager/server.crt":          {"apiserver.crt", public},
			"srv/kubernetes/kube-controller-manager/server.key":          {"apiserver.key", keys},
		},
	},
	{
		name: "the executable alone, as a unit of systemd starts it",
		command: []string{
			"/usr/local/bin/kube-controller-manager",
			"--bind-address=0.0.0.0",
			"--cluster-cidr=10.200.0.0/16",
			"--cluster-name=kubernetes",
			"--cluster-signing-cert-file=/var/lib/kubernetes/ca.crt",
			"--cluster-signing-key-file=/var/lib/kubernetes/ca.key",
			"--kubeconfig=/var/lib/kubernetes/kube-controller-manager.kubeconfig",
			"--root-ca-file=/var/lib/kubernetes/ca.crt",
			"--service-account-private-key-file=/var/lib/kubernetes/service-accounts.key",
			"--service-cluster-ip-range=10.32.0.0/24",
			"--use-service-account-credentials=true",
			"--v=2",
		},
		files: map[string]hostFile{
			"var/lib/kubernetes/kube-controller-manager.kubeconfig": {"controller-manager.conf", keys},
			"var/lib/kubernetes/ca.crt":                             {"ca.crt", public},
			"var/lib/kubernetes/ca.key":                             {"ca.key", keys},
			"var/lib/kubernetes/service-accounts.key":               {"sa.key", keys},
		},
	},
}
