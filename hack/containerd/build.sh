#!/usr/bin/env bash
# Builds containerd, ctr and crane, with which the documents put the image into a node and
# a registry, from Go modules alone, into _output/tools/bin. A tool is built again when its
# pins change.
set -euo pipefail
cd "$(dirname "$0")"
bin=$(cd ../.. && pwd)/_output/tools/bin
mkdir -p "$bin"

pins=$(cat go.mod go.sum build.sh | sha256sum | cut -d' ' -f1)-$(go env GOVERSION)
if [ "$(cat "$bin/.pins-containerd" 2>/dev/null)" = "$pins" ] && [ -x "$bin/containerd" ] && [ -x "$bin/ctr" ] && [ -x "$bin/crane" ]; then
  exit 0
fi
echo "Building containerd into _output/tools/bin; a minute or two the first time."
start=$SECONDS
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$bin/" github.com/containerd/containerd/v2/cmd/containerd github.com/containerd/containerd/v2/cmd/ctr github.com/google/go-containerregistry/cmd/crane
printf '  containerd, ctr, crane   %d s\n' "$((SECONDS - start))"
echo "$pins" >"$bin/.pins-containerd"
