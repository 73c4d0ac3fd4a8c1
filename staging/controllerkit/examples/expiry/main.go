// Command expiry is a whole controller on the kit: it deletes ConfigMaps at the time that
// their annotation example.com/expires says, and explains itself over HTTP.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the API server")
	listen := flag.String("listen", "127.0.0.1:8089", "where it explains itself; add ?key=NAMESPACE/NAME for one object")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *listen); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, kubeconfig, listen string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	writer, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	events := record.NewBroadcaster(record.WithContext(ctx))
	defer events.Shutdown()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})

	caches := informers.NewSharedInformerFactory(clientset, 0)
	controller, err := New(caches.Core().V1().ConfigMaps().Informer(), reconcile.Hand{
		Client: writer, Events: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "expiry"}),
	})
	if err != nil {
		return err
	}
	server := &http.Server{Addr: listen, Handler: controller, ReadHeaderTimeout: time.Second}
	go func() {
		if err := server.ListenAndServe(); err != http.ErrServerClosed {
			log.Print(err)
		}
	}()
	defer func() { _ = server.Close() }() // the process ends
	caches.Start(ctx.Done())
	controller.Run(ctx)
	return nil
}
