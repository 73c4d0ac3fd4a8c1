package options

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

const pauseFlag = "pause-configmap"

func (o *KubeControllerManagerOptions) addPauseFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.PauseConfigMap, pauseFlag, o.PauseConfigMap,
		"`namespace/name` of a ConfigMap of the namespace kube-system. While it names controllers, namespaces, or controllers in namespaces, nothing is written by or in them, within 2 s after it has changed. "+
			"It may be made, changed and deleted at any time. No controller is started before it has been read, or is known not to be there. Without this flag nothing can be paused.")
}

func (o *KubeControllerManagerOptions) checkPause(p *problems) {
	_, err := pauseConfigMap(o.PauseConfigMap)
	p.with(pauseFlag, o.PauseConfigMap, err)
}

// pauseConfigMap reads the flag; the zero value for none.
func pauseConfigMap(value string) (types.NamespacedName, error) {
	if value == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, both := strings.Cut(value, "/")
	switch problems := validation.IsDNS1123Subdomain(name); {
	case !both:
		return types.NamespacedName{}, fmt.Errorf("has to be a namespace and a name, such as %s/kcm-pause", metav1.NamespaceSystem)
	case namespace != metav1.NamespaceSystem:
		return types.NamespacedName{}, fmt.Errorf("has to be in namespace %s, where only administrators may write", metav1.NamespaceSystem)
	case len(problems) > 0:
		return types.NamespacedName{}, fmt.Errorf("%q is not the name of a ConfigMap: %s", name, strings.Join(problems, ", "))
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
