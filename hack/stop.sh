#!/usr/bin/env bash
# Ends the local cluster, also one that a crash left behind.
set -euo pipefail
source "$(dirname "$0")/cluster.sh"
end_cluster
