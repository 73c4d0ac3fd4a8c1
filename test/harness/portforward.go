package harness

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// portForwardProtocol is what a kubelet and its clients speak.
const portForwardProtocol = "portforward.k8s.io"

// UserKubeconfig writes a kubeconfig with a client certificate of a user.
func (cp *ControlPlane) UserKubeconfig(t testing.TB, user string, groups ...string) string {
	t.Helper()
	ca, err := loadAuthority(cp.pki.file("ca.crt"), cp.pki.file("ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.client(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: cp.URL, CertificateAuthorityData: cp.pki.caCert}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.cert, ClientKeyData: pair.key}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	path := cp.pki.file(user + ".conf")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// ForwardPorts makes a node whose kubelet only forwards ports. Its pods all share the
// loopback address of this machine.
func (cp *ControlPlane) ForwardPorts(t testing.TB, name string) {
	t.Helper()
	kubelet := httptest.NewTLSServer(http.HandlerFunc(forwardPorts))
	t.Cleanup(kubelet.Close)
	at, err := url.Parse(kubelet.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(at.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cp.Admin)
	if err != nil {
		t.Fatal(err)
	}
	node, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at.Hostname()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// forwardPorts serves one connection with any number of pairs of streams.
func forwardPorts(w http.ResponseWriter, req *http.Request) {
	if _, err := httpstream.Handshake(req, w, []string{portForwardProtocol}); err != nil {
		return // it has been answered
	}
	streams := make(chan httpstream.Stream, 8)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if connection == nil {
		return
	}
	defer connection.Close()
	complaints := map[string]httpstream.Stream{} // where errors go to, by request
	for {
		select {
		case <-connection.CloseChan():
			return
		case s := <-streams:
			request := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				complaints[request] = s
			} else {
				go forwardPort(req.Context(), s, complaints[request])
			}
		}
	}
}

// forwardPort copies both ways until one of them ends.
func forwardPort(ctx context.Context, data, complaints httpstream.Stream) {
	defer complaints.Close()
	defer data.Close()
	local, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", data.Headers().Get(corev1.PortHeader)))
	if err != nil {
		fmt.Fprint(complaints, err)
		return
	}
	defer local.Close()
	ended := make(chan struct{})
	once := sync.OnceFunc(func() { close(ended) })
	for to, from := range map[io.Writer]io.Reader{local: data, data: local} {
		go func() {
			defer once()
			_, _ = io.Copy(to, from)
		}()
	}
	<-ended
}
