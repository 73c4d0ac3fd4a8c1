#!/usr/bin/env bash
# Mutates packages with gremlins and says how many of the mutants their own tests kill.
# Without arguments: all of packages.txt. What was found is kept, a file for each package,
# in _output/mutate; the table is of all that is there.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD out=$PWD/_output/mutate tool=$PWD/_output/tools/bin/gremlins
packages=("$@")
[ $# -gt 0 ] || mapfile -t packages < <(grep '^[a-z]' hack/mutate/packages.txt)

mkdir -p "$out" "$(dirname "$tool")"
(cd hack/mutate && go build -trimpath -ldflags '-s -w' -o "$tool" github.com/go-gremlins/gremlins/cmd/gremlins)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/tree" "$work/tmp"
go build -o "$work/mutants" ./hack/mutants
# gremlins copies the whole module for each worker, so it gets one without _output.
git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - 2>/dev/null | tar -x -C "$work/tree"
REAL_GO=$(command -v go)
export REAL_GO TMPDIR=$work/tmp GOTMPDIR=$work/tmp
ln -s "$root/hack/mutate/go.sh" "$work/bin/go"

for package in "${packages[@]}"; do
  kept=$out/${package//\//-}
  rm -f "$kept".*
  start=$SECONDS
  cd "$work/tree/$package"
  # Built before gremlins takes the time of the tests.
  for cover in -cover=true -cover=false; do go test -short -vet=off -trimpath $cover -c -o /dev/null .; done
  PATH=$work/bin:$PATH "$tool" unleash --config "$root/hack/mutate/gremlins.yaml" --output "$kept.json" >"$kept.txt" 2>&1 ||
    { tail -20 "$kept.txt" >&2; exit 1; }
  [ -e "$kept.json" ] || echo "{}" >"$kept.json" # nothing to mutate
  cd "$work/tree"
  "$work/mutants" "$package" "$kept.json" >"$kept.tmp"
  mv "$kept.tmp" "$kept.tsv"
  echo "$package: $((SECONDS - start)) s"
done
cd "$root"
"$work/mutants" | tee "$out/table.md"
