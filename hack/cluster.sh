# Sourced by the scripts that start the local cluster: where it lives and how it
# is configured. kwokctl's random ports can collide, so they are all given.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/_output/tools/bin
# The end of a cluster deletes this directory whole: it has a name of its own.
cluster=${KCM_RUN_DIR:-$root/_output}/kcm-cluster
name=kcm
export PATH=$tools:$PATH KWOK_WORKDIR=$cluster/work KUBECONFIG=$cluster/kubeconfig
apiserver_port=${KCM_RUN_APISERVER_PORT:-35443}
manager_port=${KCM_RUN_MANAGER_PORT:-35257}
scheduler_port=${KCM_RUN_SCHEDULER_PORT:-35259}
kwok_port=${KCM_RUN_KWOK_PORT:-35247}
etcd_port=${KCM_RUN_ETCD_PORT:-35379}
etcd_peer_port=${KCM_RUN_ETCD_PEER_PORT:-35380}

# kwok reaps nothing and knows nothing of a crash: end what still runs from our
# work directory, whoever started it.
end_cluster() {
  if [ -d "$KWOK_WORKDIR/clusters/$name" ]; then
    kwokctl --name "$name" delete cluster >/dev/null 2>&1 || true
  fi
  local left
  left=$(pgrep -f "^$KWOK_WORKDIR/clusters/$name/bin/" || true)
  if [ -n "$left" ]; then
    kill $left 2>/dev/null || true
    for _ in $(seq 50); do
      pgrep -f "^$KWOK_WORKDIR/clusters/$name/bin/" >/dev/null || break
      sleep 0.1
    done
    pkill -9 -f "^$KWOK_WORKDIR/clusters/$name/bin/" 2>/dev/null || true
  fi
  rm -rf "$cluster"
}

# The node simulator plays the nodes that carry the label kwok=alive: a node
# that loses it falls silent as a machine does that lost its power.
write_config() {
  mkdir -p "$cluster"
  cat >"$cluster/kwok.yaml" <<YAML
apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokctlConfiguration
options:
  runtime: binary
  kubeVersion: v1.36.3
  heartbeatFactor: 1
  nodeLeaseDurationSeconds: 8
  kubeApiserverPort: $apiserver_port
  kubeControllerManagerPort: $manager_port
  kubeSchedulerPort: $scheduler_port
  kwokControllerPort: $kwok_port
  etcdPort: $etcd_port
  etcdPeerPort: $etcd_peer_port
  etcdBinary: $tools/etcd
  kubeApiserverBinary: $tools/kube-apiserver
  kubeSchedulerBinary: $tools/kube-scheduler
  kwokControllerBinary: $tools/kwok
  kubectlBinary: $tools/kubectl
  kubeControllerManagerBinary: ${KCM_BINARY:-$root/_output/bin/kube-controller-manager}
componentsPatches:
- name: kube-controller-manager
  extraArgs:
  - {key: use-service-account-credentials, value: "true"}
  - {key: authentication-kubeconfig, value: $KWOK_WORKDIR/clusters/$name/kubeconfig.yaml}
  - {key: authorization-kubeconfig, value: $KWOK_WORKDIR/clusters/$name/kubeconfig.yaml}
  - {key: allocate-node-cidrs, value: "true"}
  - {key: cluster-cidr, value: 10.244.0.0/16}
  - {key: service-cluster-ip-range, value: 10.0.0.0/24}
  - {key: node-monitor-period, value: 1s}
  - {key: node-monitor-grace-period, value: 8s}
  - {key: node-eviction-rate, value: "1"}
- name: kwok-controller
  extraArgs:
  - {key: manage-all-nodes, value: "false"}
  - {key: manage-nodes-with-label-selector, value: kwok=alive}
YAML
}
