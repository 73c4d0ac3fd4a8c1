package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-kcm/kube-controller-manager/pkg/release"
	"github.com/kube-kcm/kube-controller-manager/pkg/why"
)

// The exit codes.
const (
	answered = 0
	// failed: nobody could be asked, or gave an answer.
	failed = 1
	// badQuestion: the command line is wrong, or the manager cannot make sense of the question.
	badQuestion = 2
)

// questionError is an error of who asks.
type questionError struct{ error }

func (e questionError) Unwrap() error { return e.error }

// options are the flags of a question.
type options struct {
	kubeconfig, context, namespace string
	lease, pod                     string
	port                           int
	server, serverName             string
	token, authority               string
	insecure                       bool
	output                         string
	timeout                        time.Duration
}

// run returns the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := &cobra.Command{
		Use: "kubectl-kcm", Short: "Ask the kube-controller-manager that leads", Version: release.Version(),
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kcm"},
		SilenceUsage: true, SilenceErrors: true,
	}
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return questionError{err} })
	root.AddCommand(whyCommand(out))
	err := root.ExecuteContext(ctx)
	if err == nil {
		return answered
	}
	for i, line := range strings.Split(err.Error(), "\n") {
		if i == 0 {
			line = "error: " + line
		}
		fmt.Fprintln(errOut, printable(line))
	}
	if errors.As(err, &questionError{}) || strings.HasPrefix(err.Error(), "unknown command") {
		return badQuestion
	}
	return failed
}

const whyHelp = `Says why an object is as it is: the chain from its owners to what it owns, and
what each controller makes of it.

The leader is found by its lease, and asked through a port forwarded to its pod,
with the credentials of the kubeconfig. With --server one manager is asked at its
own address, without the API server.

Exit codes: 0 answered, 1 no answer, 2 a question that cannot be answered.`

const whyExamples = `  kubectl kcm why deployment/web
  kubectl kcm why pvc data-0 -n shop
  kubectl kcm why node/worker-1 -o json
  kubectl kcm why deployment/web --server https://127.0.0.1:10257 --certificate-authority ca.crt --token "$TOKEN"`

func whyCommand(out io.Writer) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "why KIND/NAME", Short: "Why is this object as it is?", Long: whyHelp, Example: whyExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := subject(args)
			if err == nil && o.output != "text" && o.output != "json" {
				err = fmt.Errorf("--output is %q: it can be text or json", o.output)
			}
			if err != nil {
				return questionError{err}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
			defer cancel()
			answer, err := o.ask(ctx, why.Question{Kind: kind, Namespace: o.namespace, Name: name})
			if err != nil {
				return err
			}
			if o.output == "json" {
				_, err = out.Write(answer.raw)
				return err
			}
			return printText(out, answer.Answer)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "The kubeconfig file; by default $KUBECONFIG or ~/.kube/config.")
	f.StringVar(&o.context, "context", "", "The context of the kubeconfig; by default the current one.")
	f.StringVarP(&o.namespace, "namespace", "n", "", "The namespace of the object; by default that of the context.")
	f.StringVarP(&o.output, "output", "o", "text", "text or json.")
	f.StringVar(&o.lease, "lease", "kube-system/kube-controller-manager", "The lease of the manager that is asked, NAMESPACE/NAME.")
	f.StringVar(&o.pod, "pod", "", "The pod of the leader, in the namespace of the lease; by default the name of the lease and the node, or the host name of the leader.")
	f.IntVar(&o.port, "port", 10257, "The secure port of the manager, in its pod.")
	f.StringVar(&o.server, "server", "", "The address of a controller manager to ask, such as https://127.0.0.1:10257. No leader is looked for.")
	f.StringVar(&o.token, "token", "", "A bearer token for the controller manager, in place of the credentials of the kubeconfig.")
	f.StringVar(&o.authority, "certificate-authority", "", "The file with the authority of the manager's serving certificate.")
	f.StringVar(&o.serverName, "tls-server-name", "", "The name in the manager's serving certificate; by default the one that it is reached by.")
	f.BoolVar(&o.insecure, "insecure-skip-tls-verify", false, "Do not check the manager's serving certificate, and send it a token all the same.")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "How long to wait for an answer.")
	return cmd
}

// subject is what is asked about: KIND/NAME, or KIND NAME.
func subject(args []string) (kind, name string, err error) {
	switch len(args) {
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("ask about one object, as KIND/NAME or KIND NAME, and not about %q", strings.Join(args, " "))
	}
	return kind, name, nil
}
