#!/usr/bin/env bash
# Starts a local cluster with our binary as its controller manager and shows it
# at work. The cluster is left running.
set -euo pipefail
source "$(dirname "$0")/cluster.sh"

if [ -t 1 ]; then bold=$'\e[1m' green=$'\e[32m' grey=$'\e[90m' plain=$'\e[0m'; else bold= green= grey= plain=; fi
started=$SECONDS
act() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
say() { printf '  %s%4ds%s  %s\n' "$grey" $((SECONDS - started)) "$plain" "$*"; }
good() { say "$green$*$plain"; }
fail() {
  printf '\n  %s\n  The log of the controller manager: %s\n' "$*" "$KWOK_WORKDIR/clusters/$name/logs/kube-controller-manager.log" >&2
  exit 1
}

# follow SECONDS WANT COMMAND...: prints the command's output each time it
# changes, until it matches WANT.
follow() {
  local limit=$((SECONDS + $1)) want=$2 last= now
  shift 2
  while :; do
    now=$("$@" 2>/dev/null || true)
    if [ "$now" != "$last" ]; then
      [ -z "$now" ] || while IFS= read -r line; do say "$line"; done <<<"$now"
      last=$now
    fi
    if grep -qE "$want" <<<"$now"; then return 0; fi
    [ $SECONDS -lt $limit ] || fail "Waited in vain for: $want"
    sleep 0.3
  done
}

nodes() { kubectl get nodes --no-headers | awk '{c[$2]++} END {for (s in c) printf "nodes %s: %d\n", s, c[s]}' | sort; }
ranges() { kubectl get nodes -o jsonpath='{range .items[*]}, {.metadata.name} {.spec.podCIDR}{end}' | sed 's/^, //'; }
deployment() { kubectl get deployment web -o jsonpath='web: {.status.updatedReplicas} updated, {.status.availableReplicas} available, condition Available={.status.conditions[?(@.type=="Available")].status}'; }
slice() { kubectl get endpointslices -l kubernetes.io/service-name=web -o jsonpath='{range .items[*]}slice {.metadata.name}: {.endpoints[*].addresses[0]}{end}'; }
node_state() { kubectl get node "$1" -o jsonpath='{.metadata.name}: Ready={.status.conditions[?(@.type=="Ready")].status} taints=[{range .spec.taints[*]}{.key}:{.effect} {end}]'; }
pods() { kubectl get pods -l app=web -o jsonpath='{range .items[*]}{.metadata.name} on {.spec.nodeName} {.status.phase}{" "}{.metadata.deletionTimestamp}{"\n"}{end}' | sed -E 's/ (Running|Pending|Failed) +[0-9T:Z-]+$/ leaving/; s/ +$//'; }
count_pods() {
  local all; all=$(pods)
  printf '%s\npods running on nodes that answer: %s' "$all" "$(grep -v " on $1 " <<<"$all" | grep -c ' Running$')"
}
# db says where each pod of the set is, and where the volume of its claim is attached.
db() {
  local attached pods
  attached=$(kubectl get volumeattachments -o jsonpath='{range .items[?(@.status.attached==true)]}{.spec.source.persistentVolumeName} {.spec.nodeName}{"\n"}{end}')
  pods=$(kubectl get pods -l app=db -o jsonpath='{range .items[*]}{.metadata.name} {.spec.nodeName}{"\n"}{end}')
  kubectl get persistentvolumeclaims -l app=db -o jsonpath='{range .items[*]}{.metadata.name} {.status.phase} {.spec.volumeName}{"\n"}{end}' | while read -r claim phase volume; do
    local pod=${claim#data-} node on
    node=$(awk -v pod="$pod" '$1 == pod {print $2}' <<<"$pods")
    on=$(awk -v volume="$volume" '$1 == volume {print $2}' <<<"$attached" | paste -sd,)
    on=${on:+attached to $on} node=${node:+on $node}
    echo "claim $claim is $phase, its volume ${on:-not attached}; pod $pod ${node:-is gone}"
  done
}
# placed counts the pods that have their volume where they are, except on a node.
placed() { echo "pods with their volume on their node: $(db | grep -v " on $1$" | grep -cE 'attached to (node-[0-9]); .* on \1$')"; }
names() { kubectl get pods -l app=web -o jsonpath='{.items[*].metadata.name}'; }

act "A cluster: etcd, kube-apiserver, kube-scheduler, simulated nodes, and our kube-controller-manager"
end_cluster
write_config
kwokctl --config "$cluster/kwok.yaml" --name "$name" create cluster --kubeconfig "$KUBECONFIG" --wait 180s >"$cluster/kwokctl.log" 2>&1 ||
  { cat "$cluster/kwokctl.log" >&2; fail "The cluster did not start; are the ports $apiserver_port $manager_port $scheduler_port $kwok_port $etcd_port $etcd_peer_port free? (KCM_RUN_*_PORT change them)"; }
# A controller manager that is up before the API server listens ends, like the original. A
# kubelet would start it again; so does this. kwok alone would not if another process has its PID by now.
pgrep -f "^$KWOK_WORKDIR/clusters/$name/bin/kube-controller-manager" >/dev/null || rm -f "$KWOK_WORKDIR/clusters/$name/pids/kube-controller-manager.pid"
kwokctl --name "$name" start cluster --wait 60s >>"$cluster/kwokctl.log" 2>&1
good "API server at https://127.0.0.1:$apiserver_port, controller manager at https://127.0.0.1:$manager_port"

act "Four nodes report in"
for i in 1 2 3 4; do
  cat <<YAML
apiVersion: v1
kind: Node
metadata:
  name: node-$i
  annotations: {volumes.kubernetes.io/controller-managed-attach-detach: "true"}
  labels: {kwok: alive, kubernetes.io/hostname: node-$i, kubernetes.io/os: linux, kubernetes.io/arch: amd64, topology.kubernetes.io/zone: zone-$((i % 2))}
status:
  allocatable: {cpu: "8", memory: 16Gi, pods: "110"}
  capacity: {cpu: "8", memory: 16Gi, pods: "110"}
---
YAML
done | kubectl apply -f - >/dev/null
follow 120 'nodes Ready: 4' nodes
act "Each gets its range of pod addresses"
follow 60 '^([^,]+/24, ){3}[^,]+/24$' ranges

act "A Deployment of 3 with a Service"
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      # Usual clusters wait 300 s before they give a silent node's pods up; a show does not.
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
      containers: [{name: web, image: web}]
YAML
follow 180 '3 available' deployment
act "Its EndpointSlice fills"
follow 120 'slice .*: [^ ]+ [^ ]+ [^ ]+' slice
pods | while read -r line; do say "$line"; done

victim=$(kubectl get pods -l app=web -o jsonpath='{.items[0].spec.nodeName}')
act "$victim falls silent"
kubectl label node "$victim" kwok- >/dev/null
follow 180 'unreachable:NoExecute' node_state "$victim"
act "Its pods tolerate that for 5 s, then they are evicted and replaced elsewhere"
follow 180 'answer: 3' count_pods "$victim"
follow 120 'slice .*: [^ ]+ [^ ]+ [^ ]+' slice

act "$victim is taken out of the cluster, and what was left on it goes"
kubectl delete node "$victim" >/dev/null
say "it is given 40 s to come back: a node missing from one cache is no reason to delete pods"
gone() { local n; n=$(names | wc -w); echo "pods of web in the API: $n"; }
follow 300 ': 3$' gone
kubectl get events --field-selector involvedObject.kind=Node -o custom-columns=R:.reason,M:.message --no-headers 2>/dev/null | grep "$victim" | sort | uniq -c | sort -rn | head -5 | while read -r line; do say "$line"; done
good "3 of 3 again, nothing left behind"

act "A StatefulSet of 3 whose pods have a volume each, of a pretended CSI driver"
go build -C "$root" -o "$KWOK_WORKDIR/clusters/$name/bin/csi-sidecars" ./test/csi/sidecars
"$KWOK_WORKDIR/clusters/$name/bin/csi-sidecars" -kubeconfig="$KUBECONFIG" -driver=disks.example.com >"$cluster/sidecars.log" 2>&1 &
disown
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: disks}
provisioner: disks.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: db, image: db, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data, labels: {app: db}}
    spec: {storageClassName: disks, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
YAML
follow 180 ': 3$' placed none
db | while read -r line; do say "$line"; done

home=$(kubectl get pod db-0 -o jsonpath='{.spec.nodeName}')
act "$home is drained: db-0 moves to another node, and its volume with it"
kubectl cordon "$home" >/dev/null
kubectl delete pod -l app=db --field-selector "spec.nodeName=$home" --wait=false >/dev/null
follow 180 ': 3$' placed "$home"
db | while read -r line; do say "$line"; done
kubectl uncordon "$home" >/dev/null

act "The set is scaled down to 1: volumes are detached, and the claims are kept"
kubectl scale statefulset db --replicas=1 >/dev/null
attached() { echo "attached volumes: $(kubectl get volumeattachments -o name | wc -l)"; }
follow 180 ': 1$' attached
db | while read -r line; do say "$line"; done
good "three claims Bound, one pod"

pki=$KWOK_WORKDIR/clusters/$name/pki
cat <<TEXT

${bold}The cluster is left running.${plain}
  use it        export KUBECONFIG=$KUBECONFIG
  ask why       curl -sk --cert $pki/admin.crt --key $pki/admin.key https://127.0.0.1:$manager_port/debug/controllers/
                .../debug/controllers/deployment-controller?key=default/web
  its log       $KWOK_WORKDIR/clusters/$name/logs/kube-controller-manager.log
  stop it       make stop
TEXT
