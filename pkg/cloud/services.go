package cloud

import (
	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// services shows no more Services after a stop: the library works its whole queue off.
type services struct {
	coreinformers.ServiceInformer
	gate *gate
}

// Lister returns the lister of Services to work on.
func (s services) Lister() corelisters.ServiceLister {
	return serviceLister{s.ServiceInformer.Lister(), s.gate}
}

type serviceLister struct {
	corelisters.ServiceLister
	gate *gate
}

// Services returns the lister of a namespace.
func (l serviceLister) Services(namespace string) corelisters.ServiceNamespaceLister {
	return namespacedServices{l.ServiceLister.Services(namespace), namespace, l.gate}
}

type namespacedServices struct {
	corelisters.ServiceNamespaceLister
	namespace string
	gate      *gate
}

// Get returns the Service whose turn begins, when it may.
func (l namespacedServices) Get(name string) (*corev1.Service, error) {
	if err := l.gate.turn(l.namespace); err != nil {
		return nil, err
	}
	if err := l.gate.enter(true); err != nil {
		return nil, err
	}
	l.gate.leave()
	return l.ServiceNamespaceLister.Get(name)
}
