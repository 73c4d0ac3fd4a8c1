#!/usr/bin/env bash
# Builds the programs that the tests and make run put beside the binary, from Go
# modules alone, into _output/tools/bin. A tool is built again when its pins change.
set -euo pipefail
cd "$(dirname "$0")"
bin=$(cd ../.. && pwd)/_output/tools/bin
mkdir -p "$bin"

kubernetes=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${kubernetes#v1.}
v=k8s.io/component-base/version
stamp="-X $v.gitVersion=$kubernetes -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*} -X $v.gitTreeState=clean"

# name, package, what it is for
tools="
etcd go.etcd.io/etcd/server/v3
kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler
kubectl k8s.io/kubernetes/cmd/kubectl
kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
kubeadm k8s.io/kubernetes/cmd/kubeadm
kwok sigs.k8s.io/kwok/cmd/kwok
kwokctl sigs.k8s.io/kwok/cmd/kwokctl
staticcheck honnef.co/go/tools/cmd/staticcheck
"

pins=$(cat go.mod go.sum build.sh | sha256sum | cut -d' ' -f1)-$(go env GOVERSION)
if [ "$(cat "$bin/.pins" 2>/dev/null)" = "$pins" ]; then
  missing=
  for tool in $(echo "$tools" | cut -d' ' -f1); do [ -x "$bin/$tool" ] || missing=1; done
  [ -n "$missing" ] || exit 0
fi

echo "Building the tools into _output/tools/bin; about twelve minutes on two cores the first time."
count=$(echo "$tools" | grep -c .)
n=0
while read -r name package; do
  [ -n "$name" ] || continue
  n=$((n + 1))
  start=$SECONDS
  printf '  [%d/%d] %-24s ' "$n" "$count" "$name"
  go build -trimpath -ldflags "-s -w $stamp" -o "$bin/$name" "$package"
  echo "$((SECONDS - start)) s"
done <<<"$tools"
echo "$pins" >"$bin/.pins"
