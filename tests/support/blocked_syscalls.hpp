// SPDX-License-Identifier: Apache-2.0
// Simulates an old kernel for a test: a child in which the given system calls fail, as on a kernel
// without them (ENOSYS) or under a seccomp profile that does not know them (EPERM).
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

namespace gantry::test {

inline void block_syscalls(const std::vector<long>& calls, int err) {
  std::vector<sock_filter> program = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)}};
  for (const long call : calls) {
    program.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<unsigned>(call)});
    program.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<unsigned>(err)});
  }
  program.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()),
                          .filter = program.data()};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

// Runs the body in a child; a failure there fails this test.
template <class Body>
void run_in_child(const char* what, const Body& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0) << "failed " << what;
}

// Runs the body three times: with all calls, and without these calls in both ways.
template <class Body>
void with_and_without_syscalls(const std::vector<long>& calls, const Body& body) {
  run_in_child("with all calls", body);
  for (const int err : {ENOSYS, EPERM}) {
    run_in_child(strerror(err), [&] {
      block_syscalls(calls, err);
      body();
    });
  }
}

}  // namespace gantry::test
