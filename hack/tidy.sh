#!/usr/bin/env bash
# Tidies a module; with -diff it changes nothing and fails if there is something to do.
# `go mod tidy` alone asks for the release of the kit that go.mod requires, which need not
# be there yet; so the main module is tidied with the kit beside it, and go.sum keeps the
# lines of the released one, or gets those of the file after -sums.
set -euo pipefail
kit=github.com/kube-kcm/kube-controller-manager/staging/controllerkit
sums=
[ "${2:-}" != -sums ] || sums=$(realpath "$3")
cd "$(dirname "$0")/../$1"
export GOWORK=off
if ! grep -q "$kit v" go.mod; then
  exec go mod tidy "${@:2}"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp go.mod "$work/go.mod"
grep "^$kit " go.sum >"$work/kit.sum" || true
[ -z "$sums" ] || cp "$sums" "$work/kit.sum"
grep -v "^$kit " go.sum >"$work/go.sum"
go mod edit -replace "$kit=$PWD/staging/controllerkit" "$work/go.mod"
if [ "${2:-}" = -diff ]; then
  exec go mod tidy -modfile="$work/go.mod" -diff
fi
go mod tidy -modfile="$work/go.mod"
go mod edit -dropreplace "$kit" "$work/go.mod"
cp "$work/go.mod" go.mod
# In their place among the others.
LC_ALL=C awk -v kit="$kit" -v sums="$work/kit.sum" '
  function put() { while ((getline line <sums) > 0) print line; done = 1 }
  !done && $1 > kit { put() }
  { print }
  END { if (!done) put() }' "$work/go.sum" >go.sum
