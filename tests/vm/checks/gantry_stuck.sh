# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A kernel that does not answer. First the driver: a program opens a GPU for seconds, and every reader of the driver's files waits. Then
# an agent that starts while a command is at work. Then an unbind that waits in the kernel: a process uses the GPU, and no search for
# open files finds it. An agent runs meanwhile, and bind is a request to it.
parameters=/sys/module/nvidia/parameters
waiting_in_kernel() {
  local pid
  for pid in $(pgrep -x gantry); do
    if grep -qs '^State:.*D ' "/proc/$pid/status"; then echo "$pid"; fi
  done
}
fails() { ! "$@"; }
nobody_waits() { [ -z "$(waiting_in_kernel)" ]; }
# no_child PID: the process lives and has no child
no_child() { kill -0 "$1" && fails pgrep -P "$1"; }
# nobody_listed GPU: list shows the GPU, and nobody who uses it
nobody_listed() {
  local row
  row=$(timeout 30 gantry vfio list | grep "^$1") && fails grep -F hold_hidden <<<"$row"
}
start_agent() {
  gantry agent --kubelet-socket= --output-file= >/tmp/agent 2>&1 &
  agent=$!
}

check "the driver can be silent" put $parameters/silent 1
# Each waits for 10 seconds or more: all at once.
commands=("info --no-nvml" "gpu reset $a10" "gpu reset 0" "vgpu list" "vfio bind $a10" "doctor --all --only gpu.excluded")
silent=()
for words in "${commands[@]}"; do
  # shellcheck disable=SC2086 # the words of a command
  timeout 100 gantry $words >"/tmp/silent ${words%% 0000:*}" 2>&1 &
  silent+=($!)
done
check "info answers" wait "${silent[0]}"
check "it says that the driver does not" grep -qF "did not return within" "/tmp/silent info --no-nvml"
check_is "it names all five GPUs" 5 "$(grep -cE "^[0-4] .* 0000:" "/tmp/silent info --no-nvml")"
check "a reset by address is refused" fails wait "${silent[1]}"
check "and says why" grep -qF "the driver does not answer" "/tmp/silent gpu reset"
check "a reset by index is refused" fails wait "${silent[2]}"
check "and says why" grep -qF "the driver does not answer" "/tmp/silent gpu reset 0"
check "vgpu list answers" wait "${silent[3]}"
check "bind is refused" fails wait "${silent[4]}"
check "and says why" grep -qF "does not answer" "/tmp/silent vfio bind"
wait "${silent[5]}"
check "doctor says it" grep -qF "does not answer" "/tmp/silent doctor --all --only gpu.excluded"
check "the driver answers again" put $parameters/silent 0
check "no reader is left" within 30 nobody_waits
check "a reset works" gantry gpu reset $a10

check "an unbind can take 6 seconds" put $parameters/remove_ms 6000
gantry vfio bind $a10 >/tmp/slow 2>&1 &
slow=$!
check "bind waits in the kernel" within 20 test -n "$(sleep 2; waiting_in_kernel)"
start_agent
sleep 2
check "an agent that starts meanwhile has not started NVML" no_child "$agent"
check "bind is still at work" kill -0 $slow
check "bind works" wait $slow
check "then the agent starts it" within 20 grep -q NVML /tmp/agent
check "an unbind can be quick again" put $parameters/remove_ms 0
check "release works" gantry vfio release $a10
kill "$agent"
wait "$agent" 2>/dev/null

start_agent
check "an agent takes requests" within 30 test -S /run/gantry/owner.sock
check "a process holds the T4 where no search finds it" hold_hidden /dev/nvidia3
check "list finds no holder" nobody_listed $t4
began=$SECONDS
gantry vfio bind $a10 $t4 >/tmp/stuck 2>&1 # together: the A10 must come back
status=$?
took=$((SECONDS - began))
check_is "bind gives up" 1 $status
check "after its deadline of 30 seconds, and not much later ($took s)" test $took -ge 29 -a $took -le 90
check "it says that the GPU is stuck in the kernel" grep -qF "$t4 is stuck in the kernel" /tmp/stuck
check "it says what to do" grep -qF "gantry vfio recover" /tmp/stuck
check "it says that the A10 is as before" grep -qF "$a10 is as before" /tmp/stuck
check_is "nvidia has the A10" nvidia "$(driver_of $a10)"
check_is "the journal is about the T4 alone" "$t4.journal" "$(cd /run/gantry/vfio && echo *.journal)"
writer=$(waiting_in_kernel | head -n 1)
check "the writer waits in the kernel" test -n "$writer" -a "$writer" != "$agent"
check "status says it" refuses "is stuck in the kernel" gantry vfio status
check "list answers, and says it" grep -qE "^$t4 .*(stuck|lock)" <(timeout 30 gantry vfio list)
check "the agent is alive" kill -0 "$agent"
check "bind is refused at once" refuses "stuck" timeout 20 gantry vfio bind $t4
check "recover is refused while it lasts" refuses "still stuck" timeout 20 gantry vfio recover
check "the A10 can be bound meanwhile, by the agent that is alive" timeout 60 gantry vfio bind $a10
check "and released" timeout 60 gantry vfio release $a10
check "the process ends" release_vfio
check "the writer's unbind returns" within 30 test ! -e "/proc/$writer"
check "recover works" gantry vfio recover
check_is "nvidia has the T4 again" nvidia "$(driver_of $t4)"
check "it can be opened" head -c0 /dev/nvidia3
check "status says that nothing is bound" says "bound no GPU" gantry vfio status
check "it can be bound and released" bind_and_release $t4
check "the agent is still alive" kill -0 "$agent"
kill "$agent"
check "it ends when asked" wait "$agent"
