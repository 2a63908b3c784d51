# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# deploy/driver/daemonset.yaml with note 003's edits, under a real DaemonSet controller: the control plane is outside (control_plane.py),
# kubelet, containerd and runc are in the host, which is a node. The modules were built outside.
# shellcheck source=tests/vm/driver_support.sh
. "$here/driver_support.sh"
cluster=$GANTRY_VM_CLUSTER
export PATH=$cluster/programs:$PATH KUBECONFIG=$cluster/certs/admin.kubeconfig KUBECACHEDIR=/tmp/kubectl
disk=/run/gantry-sim/changes # not an overlay, which cannot lie below containerd's
name=nvidia-driver-installer
of_pod() { kubectl -n kube-system "$@" -l k8s-app=$name; } # of_pod WORDS...: a command of kubectl for the DaemonSet's pod

join_network() {
  modprobe -a virtio_net bridge veth && within 20 test -e /sys/class/net/eth0 && ip address add 10.99.0.2/24 dev eth0 && ip link set eth0 up &&
    ip route add default via 10.99.0.1
}
# What the engine and the kubelet write is on the disk, so that it is not among the files that the driver has changed.
start_engine() {
  local directory
  for directory in "$cluster/containerd" /var/lib/kubelet /var/lib/cni /var/log/pods; do
    mkdir -p "$directory" "$disk/$directory" && cp -a "$directory/." "$disk/$directory" && mount --bind "$disk/$directory" "$directory" || return
  done
  sh "$cluster/containerd.sh" >/tmp/containerd.log 2>&1 </dev/null &
  within 60 grep -q "containerd successfully booted" /tmp/containerd.log
}
import_images() {
  local archive
  for archive in "$cluster"/images/*.tar; do ctr -n k8s.io images import "$archive" || return; done
}
start_kubelet() {
  sh "$cluster/kubelet.sh" >/tmp/kubelet.log 2>&1 </dev/null &
  kubectl wait --for=create node/gpu-node --timeout=90s && kubectl wait --for=condition=Ready node/gpu-node --timeout=60s && return
  tail -n 20 /tmp/kubelet.log
  return 1
}
rolled_out() {
  kubectl -n kube-system rollout status "daemonset/$name" --timeout=120s && return
  of_pod logs -c $name --tail=12
  of_pod describe pod | sed -n '/^Events:/,$p'
  return 1
}
uid() { of_pod get pod -o 'jsonpath={.items[*].metadata.uid}'; }
# The log of the pod's first container, as the kubelet has it: its standard output, and the seconds from its first to its last line. That
# of a deleted pod is still there for a while.
kubelet_log() { echo "/var/log/pods/kube-system_$name-"*"_$(uid)/$name"/*.log; }
standard_output() { sed -n 's/^[^ ]* stdout F //p' "$(kubelet_log)"; }
logged_seconds() {
  sed -n '1p;$p' "$(kubelet_log)" | cut -d' ' -f1 | date -f - +%s.%N | paste -sd' ' | awk '{ printf "%.2f\n", $2 - $1 }'
}

check "the host has no driver" make_bare
check "it reaches the control plane" join_network
check "the API server answers" within 90 sh -c "kubectl get --raw=/readyz >/dev/null"
check "containerd starts" start_engine
check "the images are loaded" import_images
check "the kubelet joins, and the node is ready" start_kubelet
echo "versions: Kubernetes $(kubelet --version | cut -d' ' -f2), $(containerd --version | cut -d' ' -f2,3), $(runc --version | head -n 1)"

machine_state >/tmp/state-bare
check "the note's label" kubectl label nodes gpu-node gpu/nividia=P630
check "kubectl apply -f daemonset.yaml" kubectl apply -f "$cluster/daemonset.yaml"
check "the DaemonSet is rolled out" rolled_out
standard_output >/tmp/google.log
check "the log ends as the note's, word by word" like_note /tmp/google.log
check "it begins as Google's" same "Checking cached version|Cache file /usr/local/nvidia/.cache not found." "$(head -n 2 /tmp/google.log | paste -sd'|')"
check "kubectl logs shows all of it" diff <(cut -d' ' -f4- "$(kubelet_log)") <(of_pod logs -c $name --tail=-1)
check_is "460.56 is loaded" 460.56 "$(loaded_version)"
both_gpus() { same 2 "$($google/bin/nvidia-smi -L | grep -c 'GPU-[67][24]000000-')"; }
# By their UUIDs: the module, loaded in a container, finds the description of the machine outside.
check "nvidia-smi finds both GPUs" both_gpus
check "and prints the table of this driver" says "Driver Version: 460.56       CUDA Version: 11.2" $google/bin/nvidia-smi
check "verify finds nothing wrong" gantry driver verify
check_is "what stays of the pod has no right" "pause false" \
  "$(of_pod get pod -o 'jsonpath={.items[0].status.containerStatuses[0].name} {.items[0].spec.containers[0].securityContext.privileged}')"

replace_pod() {
  local first
  first=$(uid)
  of_pod delete pod --grace-period=1 && rolled_out && refuses "" same "$first" "$(uid)"
}
# A clock also measures what else the machine does, so the quickest of at most three starts counts.
is_quick() {
  local round
  for round in 1 2 3; do
    echo "start $round: $(logged_seconds) s"
    logged_seconds | awk '{ exit !($1 > 0 && $1 < 1) }' && return
    [ "$round" -eq 3 ] || replace_pod || return
  done
  return 1
}
machine_state >/tmp/state-before
check "the pod is deleted, and the controller makes another one" replace_pod
machine_state >/tmp/state-after
check "the second start changes nothing" diff /tmp/state-before /tmp/state-after
standard_output >/tmp/google.log
check "and says so" grep -q "^Found existing driver installation for kernel version $release and driver version 460.56" /tmp/google.log
check "its log ends as the note's, too" like_note /tmp/google.log
check "it takes less than a second from its first to its last line" is_quick
sed "s,^,          ," /tmp/output

upgrade() {
  local first
  first=$(uid)
  kubectl apply -f "$cluster/daemonset-580.yaml" && rolled_out && refuses "" same "$first" "$(uid)"
}
check "the manifest gets another version, and the controller replaces the pod" upgrade
check_is "580.159.04 is loaded" 580.159.04 "$(loaded_version)"
check "nvidia-smi finds both GPUs, with it" both_gpus
check "verify finds nothing wrong with it" gantry driver verify
check "the cache file names it" grep -q "^CACHE_NVIDIA_DRIVER_VERSION=580.159.04" $google/.cache

check "kubectl delete -f daemonset.yaml" kubectl delete -f "$cluster/daemonset.yaml" --timeout=60s
check "removal works" gantry driver remove
machine_state >/tmp/state-after
check "everything is as before" diff /tmp/state-bare /tmp/state-after
