#!/usr/bin/env bash
# Mutates packages with gremlins and says how many of the mutants their own tests kill.
# Without arguments: all of packages.txt. What was found is kept, a file for each package,
# in _output/mutate; the table is of all that is there. With AGAIN=1 only those that lived,
# or timed out, are tried again, for a package whose code is as it was: after its tests
# were mended, or a machine was busy.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD out=$PWD/_output/mutate tool=$PWD/_output/tools/bin/gremlins
packages=("$@")
[ $# -gt 0 ] || mapfile -t packages < <(grep '^[a-z]' hack/mutate/packages.txt)

mkdir -p "$out" "$(dirname "$tool")"
(cd hack/mutate && GOWORK=off go build -trimpath -ldflags '-s -w' -o "$tool" github.com/go-gremlins/gremlins/cmd/gremlins)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/tree" "$work/tmp"
go build -o "$work/mutants" ./hack/mutants
# gremlins copies the whole module for each worker, so it gets one without _output.
git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - 2>/dev/null | tar -x -C "$work/tree"
REAL_GO=$(command -v go)
export REAL_GO TMPDIR=$work/tmp GOTMPDIR=$work/tmp
ln -s "$root/hack/mutate/go.sh" "$work/bin/go"

# lived makes the lines with mutants that no test failed for the only ones that git takes for changed.
lived() {
  local file line
  git init -q . && git config diff.context 0
  mkdir "$work/whole" && cp ./*.go "$work/whole"
  while read -r file line; do
    sed -i "${line}s,.*,// lived," "$file"
  done < <(awk -F'\t' '$6 == "LIVED" || $6 == "TIMED OUT" { print $2, $7 }' "$1")
  git add -A . && git -c user.name=mutate -c user.email=mutate@localhost commit -qm lived
  mv -f "$work/whole"/*.go . && rmdir "$work/whole"
}

# merge takes from the results kept before what was not tried again.
merge() {
  awk -F'\t' -v OFS='\t' 'NR == FNR { was[$1, $2, $3, $4, $5, $7] = $6; next }
    $6 == "SKIPPED" { $6 = was[$1, $2, $3, $4, $5, $7] } { print }' "$1" "$2"
}

for package in "${packages[@]}"; do
  kept=$out/${package//\//-}
  start=$SECONDS
  cd "$work/tree/$package"
  again=()
  if [ -n "${AGAIN:-}" ] && [ -e "$kept.tsv" ] && sha256sum --quiet --check "$kept.sum"; then
    grep -qE $'\t(LIVED|TIMED OUT)\t' "$kept.tsv" || continue
    lived "$kept.tsv"
    again=(--diff HEAD)
  fi
  # Built before gremlins takes the time of the tests.
  for cover in -cover=true -cover=false; do go test -short -vet=off -trimpath $cover -c -o /dev/null .; done
  rm -f "$kept.json"
  PATH=$work/bin:$PATH "$tool" unleash --config "$root/hack/mutate/gremlins.yaml" "${again[@]}" --output "$kept.json" >"$kept.txt" 2>&1 ||
    { tail -20 "$kept.txt" >&2; exit 1; }
  [ -e "$kept.json" ] || echo '{}' >"$kept.json" # nothing to mutate
  cd "$work/tree"
  "$work/mutants" "$package" "$kept.json" >"$kept.new"
  if [ ${#again[@]} -gt 0 ]; then merge "$kept.tsv" "$kept.new" >"$kept.all" && mv "$kept.all" "$kept.new"; fi
  mv "$kept.new" "$kept.tsv"
  (cd "$package" && ls ./*.go | grep -v _test.go | xargs sha256sum) >"$kept.sum"
  echo "$package: $((SECONDS - start)) s"
done
cd "$root"
# What lives without a reason is listed beside the table.
code=0
"$work/mutants" >"$out/table.md" 2>"$out/lives.txt" || code=$?
cat "$out/table.md"
grep '^mutants: ' "$out/lives.txt" >&2 || true
exit "$code"
