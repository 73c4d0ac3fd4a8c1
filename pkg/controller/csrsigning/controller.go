package csrsigning

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
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
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller signs requests. Each signer has a loop, whose keys are names of
// requests; one more loop looks after the files.
type Controller struct {
	*runner.Group
	requests certificateslisters.CertificateSigningRequestLister
	client   kubernetes.Interface
	clock    clock.PassiveClock
	duration time.Duration
	signers  []*signer
	pairs    map[Files]*pair
	files    *runner.Runner[Files]
}

// signer is one of the signers and its loop.
type signer struct {
	*runner.Runner[string]
	controller *Controller
	name       string
	pair       *pair
	writes     *consistency.Tracker[string]
}

// New returns the controller, which is not running yet. It fails when files
// cannot be used.
func New(requests certificatesinformers.CertificateSigningRequestInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		requests: requests.Lister(), client: client, clock: o.Clock, duration: o.Duration, pairs: map[Files]*pair{},
	}
	c.files = runner.New(runner.Options[Files]{Name: name + "-files", Queue: filesQueue, Clock: o.Clock}, c.syncFiles)
	loops := []runner.Loop{c.files}
	for _, signerName := range []string{
		certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName,
		certificatesv1.KubeAPIServerClientSignerName, LegacyUnknown,
	} {
		files, ok := o.Signers[signerName]
		if !ok {
			continue
		}
		s, err := c.add(signerName, files, requests, o.Clock)
		if err != nil {
			return nil, fmt.Errorf("failed to init %s certificate controller: %w", signerName, err)
		}
		c.signers = append(c.signers, s)
		loops = append(loops, s)
	}
	c.Group = runner.NewGroup(name, loops...)
	return c, nil
}

func (c *Controller) add(signerName string, files Files, requests certificatesinformers.CertificateSigningRequestInformer, clock clock.WithTicker) (*signer, error) {
	if c.pairs[files] == nil {
		loaded, err := load(files)
		if err != nil {
			return nil, err
		}
		c.pairs[files] = loaded
		c.files.Add(files)
	}
	s := &signer{controller: c, name: signerName, pair: c.pairs[files]}
	s.writes = consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{
		certificates.Resource: requests.Informer().GetStore(),
	})
	s.Runner = runner.New(runner.Options[string]{
		Name: name + "-" + path.Base(signerName), Queue: certificates.Queue, Workers: certificates.Workers, Clock: clock,
		RateLimiter: certificates.Retries(), Writes: s.writes,
	}, s.sync)
	return s, runner.Watch(s.Runner, requests.Informer(),
		func(change runner.Change[certificatesv1.CertificateSigningRequest], wake runner.Wake[string]) {
			// One that waited is looked at once more when it no longer does, which ends its retries.
			if change.New != nil && waiting(change.New, signerName) || change.Old != nil && waiting(change.Old, signerName) {
				wake.Add(change.Now().Name)
			}
		})
}

func (s *signer) sync(ctx context.Context, requestName string) runner.Result {
	csr, err := s.controller.requests.Get(requestName)
	if apierrors.IsNotFound(err) {
		csr, err = nil, nil
		s.writes.Forget(requestName)
	}
	if err != nil {
		return runner.Done(err)
	}
	do := decide(csr, s.name)
	switch {
	case do.broken != nil:
		err = errors.Join(errRequest, do.broken)
	case do.Fail != "":
		err = s.fail(ctx, csr, do.Fail)
	case do.Sign:
		s.controller.lookAt(ctx, s.pair)
		err = s.issue(ctx, csr, do)
	}
	if errors.Is(err, errRequest) {
		return runner.GiveUp(err).Because(do)
	}
	return runner.Done(err).Because(do)
}

func (c *Controller) syncFiles(ctx context.Context, files Files) runner.Result {
	c.lookAt(ctx, c.pairs[files])
	return runner.Done().LookAgain(filesPeriod)
}

// lookAt tells what is new about the files of a pair, and lets requests that
// could not be signed with the old one try the new one.
func (c *Controller) lookAt(ctx context.Context, p *pair) {
	found := p.look(c.clock.Now())
	logger := klog.FromContext(ctx).WithValues("certFile", p.files.Cert, "keyFile", p.files.Key)
	if found.trouble != nil {
		logger.Error(found.trouble, "The signing files have changed and cannot be used, the pair from before stays in use")
	}
	if !found.replaced {
		return
	}
	logger.Info("The signing files have changed, the new pair is in use", "issuer", p.authority().Certificate.Subject.String())
	all, err := c.requests.List(labels.Everything())
	if err != nil {
		logger.Error(err, "Requests that wait for another pair are not tried at once")
	}
	for _, s := range c.signers {
		for _, csr := range all {
			if s.pair == p && waiting(csr, s.name) {
				s.Add(csr.Name)
			}
		}
	}
}
