#!/usr/bin/env bash
# The go command as gremlins runs it. It takes a mutant that does not compile for one that
# a test killed unless go exits with 2, and the time of a first run for the measure of all;
# and a mutant may eat memory without end.
set -uo pipefail
[ "$1" = test ] || exec "$REAL_GO" "$@"
shift
case " $* " in
*" -coverprofile "*)
  sleep 4 # the least that a mutant has to be built in, and run, is a multiple of this
  set -- -count=1 "$@"
  ;;
esac
ulimit -v 8388608
output=$("$REAL_GO" test -short -vet=off -trimpath "$@" 2>&1 | tail -c 100000)
code=$?
printf '%s\n' "$output"
case $output in *"build failed]"* | *"setup failed]"*) code=2 ;; esac
exit "$code"
