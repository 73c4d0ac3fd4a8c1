#!/usr/bin/env bash
# Builds Prometheus and promtool, which try the rules and the dashboard of build/monitoring,
# from Go modules alone, into _output/tools/bin. They find no targets but those that they
# are given. A tool is built again when its pins change.
set -euo pipefail
cd "$(dirname "$0")"
bin=$(cd ../.. && pwd)/_output/tools/bin
mkdir -p "$bin"

pins=$(cat go.mod go.sum build.sh | sha256sum | cut -d' ' -f1)-$(go env GOVERSION)
if [ "$(cat "$bin/.pins-monitoring" 2>/dev/null)" = "$pins" ] && [ -x "$bin/prometheus" ] && [ -x "$bin/promtool" ]; then
  exit 0
fi
echo "Building Prometheus into _output/tools/bin; some minutes the first time."
for tool in prometheus promtool; do
  start=$SECONDS
  go build -trimpath -tags remove_all_sd -ldflags '-s -w' -o "$bin/$tool" github.com/prometheus/prometheus/cmd/$tool
  printf '  %-24s %d s\n' "$tool" "$((SECONDS - start))"
done
echo "$pins" >"$bin/.pins-monitoring"
