# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# An unbind that waits in the kernel: a process uses the GPU, and no search for open files finds it. An agent runs meanwhile, and bind
# is a request to it.
gantry agent --kubelet-socket= --output-file= >/tmp/agent 2>&1 &
agent=$!
waiting_in_kernel() {
  local pid
  for pid in $(pgrep -x gantry); do
    if grep -qs '^State:.*D ' "/proc/$pid/status"; then echo "$pid"; fi
  done
}
check "an agent takes requests" within 30 test -S /run/gantry/owner.sock
check "a process holds the T4 where no search finds it" hold_hidden /dev/nvidia3
check "list finds no holder" refuses "" grep -F hold_hidden <(gantry vfio list)
began=$SECONDS
gantry vfio bind $t4 >/tmp/stuck 2>&1
status=$?
took=$((SECONDS - began))
check_is "bind gives up" 1 $status
check "after its deadline of 30 seconds, and not much later ($took s)" test $took -ge 29 -a $took -le 90
check "it says that the GPU is stuck in the kernel" grep -qF "$t4 is stuck in the kernel" /tmp/stuck
check "it says what to do" grep -qF "gantry vfio recover" /tmp/stuck
writer=$(waiting_in_kernel | head -n 1)
check "the writer waits in the kernel" test -n "$writer" -a "$writer" != "$agent"
check "status says it" refuses "is stuck in the kernel" gantry vfio status
check "list answers, and says it" grep -qE "^$t4 .*(stuck|lock)" <(timeout 30 gantry vfio list)
check "the agent is alive" kill -0 "$agent"
check "bind is refused at once" refuses "stuck" timeout 20 gantry vfio bind $t4
check "recover is refused while it lasts" refuses "still stuck" timeout 20 gantry vfio recover
check "another GPU can be bound meanwhile, by the agent that is alive" timeout 60 gantry vfio bind $a10
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
