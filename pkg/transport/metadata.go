package transport

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metadataOnly asks, as a parameter of a media type, for the metadata of an object.
const metadataOnly = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// podAnswers has the kinds of answers to requests about a pod.
var podAnswers = runtime.NewScheme()

func init() {
	utilruntime.Must(corev1.AddToScheme(podAnswers))
	utilruntime.Must(metav1.AddMetaToScheme(podAnswers))
}

// PodMetadata returns the client, which asks for no more than the metadata of a pod that
// it creates or deletes: nobody uses the rest of the answer. A server that answers with
// the whole pod is understood too.
func PodMetadata(whole client.Client, config *rest.Config, connections *http.Client) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.ContentType = cmp.Or(config.ContentType, runtime.ContentTypeProtobuf)
	config.NegotiatedSerializer = serializer.NewCodecFactory(podAnswers).WithoutConversion()
	pods, err := rest.RESTClientForConfigAndClient(config, connections)
	if err != nil {
		return nil, fmt.Errorf("make the client of pods: %w", err)
	}
	return &podMetadata{Client: whole, pods: pods, accept: partly(cmp.Or(config.AcceptContentTypes, config.ContentType+",*/*"))}, nil
}

// partly asks for metadata in the first of some media types, or else for all in any of them.
func partly(accept string) string {
	first, _, _ := strings.Cut(accept, ",")
	media, _, _ := strings.Cut(first, ";")
	return media + metadataOnly + "," + accept
}

type podMetadata struct {
	client.Client
	pods   rest.Interface
	accept string
}

// Create makes an object. Of a pod the metadata is put into it, and the rest is emptied.
func (c *podMetadata) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	pod, is := object.(*corev1.Pod)
	if !is {
		return c.Client.Create(ctx, object, options...)
	}
	how := client.CreateOptions{}
	answer, err := c.pods.Post().Namespace(pod.Namespace).Resource("pods").SetHeader("Accept", c.accept).
		VersionedParams(how.ApplyOptions(options).AsCreateOptions(), runtime.NewParameterCodec(podAnswers)).Body(pod).Do(ctx).Get()
	if err != nil {
		return err
	}
	switch made := answer.(type) {
	case *metav1.PartialObjectMetadata:
		*pod = corev1.Pod{ObjectMeta: made.ObjectMeta}
	case *corev1.Pod:
		*pod = corev1.Pod{ObjectMeta: made.ObjectMeta}
	default:
		return fmt.Errorf("the API server answers the creation of a pod with %T", answer)
	}
	return nil
}

// Delete deletes an object. What is answered is not looked at, unless it is an error.
func (c *podMetadata) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if _, is := object.(*corev1.Pod); !is {
		return c.Client.Delete(ctx, object, options...)
	}
	how := client.DeleteOptions{}
	return c.pods.Delete().Namespace(object.GetNamespace()).Resource("pods").Name(object.GetName()).SetHeader("Accept", c.accept).
		Body(how.ApplyOptions(options).AsDeleteOptions()).Do(ctx).Error()
}
