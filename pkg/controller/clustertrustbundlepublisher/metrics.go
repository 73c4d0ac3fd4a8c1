package clustertrustbundlepublisher

import "github.com/kube-kcm/kube-controller-manager/pkg/publishing"

var syncs = publishing.NewSyncs("clustertrustbundle_publisher", "the bundles")
