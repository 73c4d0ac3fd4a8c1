package rootcapublisher

import "github.com/kube-kcm/kube-controller-manager/pkg/publishing"

var syncs = publishing.NewSyncs("root_ca_cert_publisher", "a namespace")
