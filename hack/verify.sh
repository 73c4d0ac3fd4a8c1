#!/usr/bin/env bash
# The rules as commands: what CI holds, and a developer can run.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=
step() { printf '%s\n' "$1"; shift; "$@" || failed=1; }

formatted() { local f; f=$(git ls-files '*.go' | xargs gofmt -l); [ -z "$f" ] || { echo "not formatted:" $f >&2; return 1; }; }
# The modules but the main one are looked at as those who get them see them.
in_kit() { (cd staging/controllerkit && GOWORK=off "$@"); }
in_image() { (cd hack/image && GOWORK=off "$@"); }
# What is to be changed is printed; without that, the command itself has failed.
tidy() {
  local change
  change=$(hack/tidy.sh "$1" -diff) && return
  if [ -n "$change" ]; then
    echo "$1: go.mod is not tidy: run make tidy" >&2
  else
    echo "$1: cannot tell whether go.mod is tidy: go mod tidy failed as it says above" >&2
  fi
  return 1
}

step "format" formatted
step "go.mod" tidy .
step "go.mod of the kit" tidy staging/controllerkit
step "go.mod of the image" tidy hack/image
step "vet" go vet ./...
step "vet the kit" in_kit go vet ./...
step "vet the image" in_image go vet ./...
step "staticcheck" _output/tools/bin/staticcheck ./...
step "staticcheck the kit" in_kit ../../_output/tools/bin/staticcheck ./...
step "staticcheck the image" in_image ../../_output/tools/bin/staticcheck ./...
step "rules of the house" go run ./hack/verify
[ -z "$failed" ] || { echo "verify: failed" >&2; exit 1; }
echo "verify: all clean"
