package csrsigning

import (
	"context"
	"fmt"
	"path"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/labels"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name = "certificatesigningrequest-signing-controller"
	// filesQueue is the name under which dashboards know the reloading of the files.
	filesQueue = "DynamicCABundle-csr-controller"
	// filesPeriod is the time between two looks at files when nothing is signed.
	filesPeriod = time.Minute
)

// Options are the settings of the controller.
type Options struct {
	// Signers are the files of the authority of each signer, by its name.
	Signers map[string]Files
	// Duration is how long certificates are valid at most.
	Duration time.Duration
}

// Controller signs requests. Each signer has a loop, whose keys are names of
// requests; one more loop looks after the files.
type Controller struct {
	*runner.Group
	requests certificateslisters.CertificateSigningRequestLister
	cache    toolscache.Store
	duration time.Duration
	signers  []*signer
	pairs    map[Files]*pair
	files    *reconcile.Controller[Files]
}

// signer is one of the signers and its loop.
type signer struct {
	*reconcile.Controller[string]
	of   *Controller
	name string
	pair *pair
}

// New returns the controller, which is not running yet. It fails when files
// cannot be used.
func New(requests certificatesinformers.CertificateSigningRequestInformer, hand reconcile.Hand, o Options) (*Controller, error) {
	c := &Controller{requests: requests.Lister(), cache: requests.Informer().GetStore(), duration: o.Duration, pairs: map[Files]*pair{}}
	c.files = reconcile.New(reconcile.Options[Files]{
		Runner: runner.Options[Files]{Name: name + "-files", Queue: filesQueue}, Hand: hand, Name: name,
	}, c.observeFiles, planFiles)
	loops := []runner.Loop{c.files}
	for _, signerName := range []string{
		certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName,
		certificatesv1.KubeAPIServerClientSignerName, LegacyUnknown,
	} {
		files, ok := o.Signers[signerName]
		if !ok {
			continue
		}
		s, err := c.add(signerName, files, requests, hand)
		if err != nil {
			return nil, fmt.Errorf("failed to init %s certificate controller: %w", signerName, err)
		}
		c.signers = append(c.signers, s)
		loops = append(loops, s)
	}
	c.Group = runner.NewGroup(name, loops...)
	return c, nil
}

func (c *Controller) add(signerName string, files Files, requests certificatesinformers.CertificateSigningRequestInformer, hand reconcile.Hand) (*signer, error) {
	if c.pairs[files] == nil {
		loaded, err := load(files)
		if err != nil {
			return nil, err
		}
		c.pairs[files] = loaded
		c.files.Add(files)
	}
	s := &signer{of: c, name: signerName, pair: c.pairs[files]}
	s.Controller = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{
			Name: name + "-" + path.Base(signerName), Queue: certificates.Queue, Workers: certificates.Workers,
			RateLimiter: certificates.Retries(),
		},
		Hand: hand, Name: name, Caches: reconcile.Caches{certificates.Resource: c.cache},
	}, s.observe, plan)
	return s, runner.Watch(s.Runner, requests.Informer(),
		func(change runner.Change[certificatesv1.CertificateSigningRequest], wake runner.Wake[string]) {
			// One that waited is looked at once more when it no longer does, which ends its retries.
			if change.New != nil && waiting(change.New, signerName) || change.Old != nil && waiting(change.Old, signerName) {
				wake.Add(change.Now().Name)
			}
		})
}

// observe reads a request, and signs it if it is to be: keys and random numbers are
// not for a plan.
func (s *signer) observe(ctx context.Context, requestName string) (observed, error) {
	csr, err := reconcile.Cached[certificatesv1.CertificateSigningRequest](s.of.cache, requestName)
	if err != nil {
		return observed{}, err
	}
	o := observed{csr: csr, inspection: inspect(csr, s.name)}
	if o.request != nil {
		s.of.lookAt(ctx, s.pair)
		o.certificate, o.unsigned = sign(s.pair.authority(), o.request, &csr.Spec, s.of.duration, s.Clock().Now())
	}
	return o, nil
}

func (c *Controller) observeFiles(ctx context.Context, files Files) (*certificates.Authority, error) {
	p := c.pairs[files]
	c.lookAt(ctx, p)
	return p.authority(), nil
}

func planFiles(in *certificates.Authority, _ time.Time) act.Plan {
	return act.Plan{
		Why:          fmt.Sprintf("%s is in use, until %s", in.Certificate.Subject, in.Certificate.NotAfter.Format(time.RFC3339)),
		RequeueAfter: filesPeriod,
	}
}

// lookAt logs what has changed about the files of a pair, and lets requests that
// could not be signed with the old one try the new one.
func (c *Controller) lookAt(ctx context.Context, p *pair) {
	found := p.look(c.files.Clock().Now())
	logger := klog.FromContext(ctx).WithValues("certFile", p.files.Cert, "keyFile", p.files.Key)
	if found.trouble != nil {
		logger.Error(found.trouble, "The signing files have changed and cannot be used; the previous pair stays in use")
	}
	if !found.replaced {
		return
	}
	logger.Info("The signing files have changed; the new pair is in use", "issuer", p.authority().Certificate.Subject.String())
	all, err := c.requests.List(labels.Everything())
	if err != nil {
		logger.Error(err, "Cannot wake the requests that wait for a new pair; they are retried with backoff")
	}
	for _, s := range c.signers {
		for _, csr := range all {
			if s.pair == p && waiting(csr, s.name) {
				s.Add(csr.Name)
			}
		}
	}
}
