// Package bootstrapsigner signs the kubeconfig in config map
// kube-public/cluster-info with every bootstrap token for signing, so that who
// knows a token can check whether what anybody may read is genuine.
//
// It reads that config map and the secrets of bootstrap tokens in kube-system.
// It writes the keys jws-kubeconfig-<token ID> of the config map, each a JWS
// (HS256) without its content, and takes away those of tokens that are gone,
// have expired or sign no more. It touches no other key and no secret, and
// writes nothing while the config map has no kubeconfig.
package bootstrapsigner
