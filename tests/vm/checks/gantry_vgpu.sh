#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gantry vgpu on a real kernel with the simulated driver, in a virtual machine host. Prints "ok NAME" or "FAIL NAME reason"
# for each check.
#   usage: vgpu.sh mdev|mdev-vf|vfio
# The host has the modules nvidia and nvidia-vgpu-vfio loaded (framework=mdev or vendor), gantry in PATH, and GPU 0 with at
# least two vGPU types of different sizes of which four of the smaller one fit.
wanted=${1:?usage: vgpu.sh mdev|mdev-vf|vfio}
work=$(mktemp -d)
status=0

ok() { echo "ok $1"; }
fail() { status=1; echo "FAIL $1 $(echo "$2" | tr '\n' ' ' | cut -c1-400)"; }
# check NAME COMMAND...: it must succeed
check() { name=$1; shift; if said=$("$@" 2>&1); then ok "$name"; else fail "$name" "$said"; fi; }
# refuse NAME TEXT COMMAND...: it must fail and print TEXT
refuse() {
  name=$1 text=$2; shift 2
  if said=$("$@" 2>&1); then fail "$name" "succeeded: $said"; else
    case $said in *"$text"*) ok "$name" ;; *) fail "$name" "$said" ;; esac
  fi
}
# equal NAME GOT WANTED
equal() { if [ "$2" = "$3" ]; then ok "$1"; else fail "$1" "got '$2', wanted '$3'"; fi; }

json() { gantry vgpu list --gpu 0 --json; }
# The values of one key, in order: all of our JSON has one member on a line.
values() { sed -n "s/^ *\"$1\": *\"\\{0,1\\}\\([^\",]*\\)\"\\{0,1\\},\\{0,1\\}\$/\\1/p"; }
vgpus() { json | sed -n '/"vgpus"/,$p' | values "$1"; }
count() { vgpus id | grep -c .; }

# A process that has the first vGPU's group open, as a virtual machine has.
hold_first() {
  node=$(vgpus node | head -1)
  ( exec 9<>"$node"; sleep 30 ) &
  holder=$!
  sleep 0.3
}
let_go() { kill "$holder" 2>/dev/null; wait "$holder" 2>/dev/null; }

rm -rf /var/lib/gantry/vgpu
equal "vgpu: GPUs are found" "$(json | values index | head -1)" 0
if [ "$wanted" != mdev ]; then
  equal "vgpu: virtual functions are off at first" "$(json | values framework)" vfs-off
  first=$(gantry vgpu create NONE-1Q --gpu 0 2>&1)
  case $first in *"has no vGPU type NONE-1Q"*) ok "vgpu: functions are enabled to learn the types" ;; *) fail "vgpu: functions are enabled to learn the types" "$first" ;; esac
  equal "vgpu: every function appeared" "$(json | values enabledVfs)" "$(json | values totalVfs)"
fi
equal "vgpu: the interface is $wanted" "$(json | values framework)" "$wanted"
small=$(gantry vgpu types --gpu 0 | awk 'NR == 2 { print $2 }')
large=$(gantry vgpu types --gpu 0 | awk 'NR == 3 { print $2 }')
if [ -n "$small" ] && [ -n "$large" ]; then ok "vgpu: types are listed"; else fail "vgpu: types are listed" "$small $large"; fi

check "vgpu: create two" gantry vgpu create "$small" --gpu 0 --count 2
equal "vgpu: two exist" "$(count)" 2
node=$(vgpus node | head -1)
if [ -c "$node" ]; then ok "vgpu: a VFIO node appeared"; else fail "vgpu: a VFIO node appeared" "no $node"; fi
refuse "vgpu: another size beside them" "one size" gantry vgpu create "$large" --gpu 0
refuse "vgpu: more than fit" "at most" gantry vgpu create "$small" --gpu 0 --count 1000
refuse "vgpu: an unknown vGPU" "there is no vGPU" gantry vgpu remove 00000000-0000-4000-8000-000000000000
[ "$wanted" = vfio ] || refuse "vgpu: a wrong UUID" "is not a UUID" gantry vgpu create "$small" --gpu 0 --uuid 1234

hold_first
refuse "vgpu: one in use is not removed" "in use by process" gantry vgpu remove --all --gpu 0
equal "vgpu: and nothing else was" "$(count)" 2
let_go

cat >"$work/vgpu.yaml" <<END
version: v1
vgpu-configs:
  default: [{devices: all, vgpu-devices: {}}]
  small: [{devices: [0], vgpu-devices: {$small: 3}}]
  large: [{devices: [0], vgpu-devices: {$large: 1}}]
  mixed: [{devices: [0], vgpu-devices: {$large: 1, $small: 1}}]
  wrong: [{devices: [0], vgpu-devices: {$small: 1, NONE-1Q: 1}}]
END
kept=$(vgpus id | head -1)
check "vgpu: apply a set" gantry vgpu apply -f "$work/vgpu.yaml" -c small
equal "vgpu: three exist" "$(count)" 3
if vgpus id | grep -q "$kept"; then ok "vgpu: the first one stayed"; else fail "vgpu: the first one stayed" "$(vgpus id)"; fi
check "vgpu: assert it" gantry vgpu assert -f "$work/vgpu.yaml" -c small
refuse "vgpu: assert another" "not applied" gantry vgpu assert -f "$work/vgpu.yaml" -c large
refuse "vgpu: a set with a type that does not exist" "has no vGPU type" gantry vgpu apply -f "$work/vgpu.yaml" -c wrong
equal "vgpu: and nothing was removed" "$(count)" 3
check "vgpu: replace by another size" gantry vgpu apply -f "$work/vgpu.yaml" -c large
equal "vgpu: one large one" "$(vgpus type)" "$large"
check "vgpu: nvidia-vgpu-dm asserts it" nvidia-vgpu-dm assert -f "$work/vgpu.yaml" -c large

# Mixed sizes are a matter of nvidia-smi; here it sets the parameter of the simulated module.
printf '#!/bin/sh\necho 1 >/sys/module/nvidia_vgpu_vfio/parameters/mixed\n' >"$work/nvidia-smi"
chmod 755 "$work/nvidia-smi"
check "vgpu: mixed sizes" env PATH="$work:$PATH" gantry vgpu apply -f "$work/vgpu.yaml" -c mixed
equal "vgpu: two sizes" "$(vgpus type | sort | tr '\n' ' ')" "$(printf '%s\n%s\n' "$small" "$large" | sort | tr '\n' ' ')"
echo 0 >/sys/module/nvidia_vgpu_vfio/parameters/mixed

# kill -9 at some moment of a change: the next one mends it.
for delay in 0.02 0.05 0.1 0.2 0.4; do
  gantry vgpu apply -f "$work/vgpu.yaml" -c small >/dev/null 2>&1 &
  victim=$!
  sleep $delay
  kill -9 $victim 2>/dev/null
  wait $victim 2>/dev/null
  check "vgpu: restore after a kill at $delay s" gantry vgpu apply --restore
  check "vgpu: and apply the other" gantry vgpu apply -f "$work/vgpu.yaml" -c large
done

# What a reboot does: the driver forgets.
address=$(json | values address | head -1)
if [ "$wanted" = mdev ]; then
  for device in /sys/bus/mdev/devices/*; do [ -e "$device/remove" ] && echo 1 >"$device/remove"; done
else
  echo 0 >"/sys/bus/pci/devices/$address/sriov_numvfs"
fi
equal "vgpu: all are forgotten" "$(count)" 0
check "vgpu: restore them" gantry vgpu apply --restore
equal "vgpu: the large one is back" "$(vgpus type)" "$large"
check "vgpu: remove all" gantry vgpu remove --all
equal "vgpu: none is left" "$(count)" 0
rm -rf "$work"
exit $status
