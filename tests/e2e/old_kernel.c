// SPDX-License-Identifier: Apache-2.0
// old_kernel PROGRAM ARGV0...: runs a program as on a kernel of 2019, without openat2 and the calls
// that mount by descriptor (ENOSYS).
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MISSING(call)                                 \
  {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (call)}, {        \
    BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS \
  }

int main(int argc, char** argv) {
  struct sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
      MISSING(SYS_openat2),
      MISSING(SYS_open_tree),
      MISSING(SYS_move_mount),
      MISSING(SYS_mount_setattr),
      MISSING(SYS_close_range),
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const struct sock_fprog filter = {sizeof program / sizeof *program, program};
  if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 126;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return 126;
  execv(argv[1], argv + 2);
  return 127;
}
