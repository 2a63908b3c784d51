// SPDX-License-Identifier: GPL-2.0 OR MIT
// kill_at N COMMAND...: kills COMMAND (SIGKILL) at its Nth rename or unlink, before the call is
// made, and exits with 137; exits with COMMAND's status if it ends before. A filter in the kernel
// stops the command at these calls alone: strace 6.1 can kill only if it stops at every call, and
// then one `gantry vfio bind` takes a minute in a virtual machine without KVM.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const int options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                           PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;

#define STOP_AT(number)                                     \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##number, 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE)

static int filter_calls(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      STOP_AT(rename),
      STOP_AT(renameat),
      STOP_AT(renameat2),
      STOP_AT(unlink),
      STOP_AT(unlinkat),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                 prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0
             ? 0
             : -1;
}

static int run_traced(char** command) {
  if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) return -1;
  raise(SIGSTOP);  // until the options are set
  if (filter_calls() != 0) return -1;
  execvp(command[0], command);
  return -1;
}

// Children are followed because the filter stops them too; only the command's own calls count.
static int follow(pid_t command, long number) {
  long seen = 0;
  int status;
  for (;;) {
    pid_t pid = waitpid(-1, &status, __WALL);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return 2;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (pid != command) continue;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    int event = status >> 16;
    if (event == PTRACE_EVENT_SECCOMP && pid == command && ++seen == number) {
      kill(command, SIGKILL);
      continue;
    }
    int signal = WSTOPSIG(status);
    ptrace(PTRACE_CONT, pid, 0, event != 0 || signal == SIGSTOP || signal == SIGTRAP ? 0 : signal);
  }
}

int main(int argc, char** argv) {
  int status;
  if (argc < 3) return 2;
  pid_t command = fork();
  if (command == 0) {
    run_traced(argv + 2);
    perror(argv[2]);
    _exit(127);
  }
  if (waitpid(command, &status, 0) != command || !WIFSTOPPED(status) ||
      ptrace(PTRACE_SETOPTIONS, command, 0, options) != 0) {
    perror("kill_at");
    return 2;
  }
  ptrace(PTRACE_CONT, command, 0, 0);
  return follow(command, strtol(argv[1], NULL, 10));
}
