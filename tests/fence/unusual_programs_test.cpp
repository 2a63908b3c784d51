// SPDX-License-Identifier: Apache-2.0
// Unusual programs: they close the library, free memory at exit, use vfork, or are not allowed to
// connect. Nothing breaks, and every limit still holds.
#include "fence/share_under_test.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace gantry::fence::test {
namespace {

using sim::cuda::ready;

constexpr std::uint64_t kProgramLimit = 200 * kMiB;

bool take(const CudaLibrary& cuda, std::uint64_t bytes, CUdeviceptr* pointer = nullptr) {
  CUdeviceptr made = 0;
  return cuda.cuMemAlloc_v2(pointer == nullptr ? &made : pointer, bytes) == CUDA_SUCCESS;
}

TEST(OddPrograms, WhoClosesTheLibraryHasTheSameOneAgain) {
  ShareUnderTest share({.memory_limit = kProgramLimit});
  const pid_t child = share.process([&] {
    {
      const CudaLibrary cuda(share.fence());
      ready(cuda);
      if (!take(cuda, 150 * kMiB)) return 1;
    }
    void* handle = ::dlopen(share.fence().c_str(), RTLD_NOW | RTLD_LOCAL);
    for (int i = 0; i < 3; ++i) ::dlclose(handle);  // more often than it was opened by name
    const CudaLibrary again(share.fence());
    if (take(again, 100 * kMiB)) return 2;
    return take(again, 40 * kMiB) ? 0 : 3;
  });
  EXPECT_EQ(ShareUnderTest::wait_for_exit(child), 0);
  EXPECT_TRUE(ShareUnderTest::until([&] { return share.held() == 0; }));
}

// As static objects of a program do: after main, when other libraries have ended.
TEST(OddPrograms, WhoFreesAtItsEndMayDoSo) {
  ShareUnderTest share({.memory_limit = kProgramLimit});
  const pid_t child = share.process([&]() -> int {
    static const CudaLibrary* cuda = nullptr;
    static CUdeviceptr pointer = 0;
    cuda = new CudaLibrary(share.fence());
    ready(*cuda);
    if (!take(*cuda, 10 * kMiB, &pointer)) ::_exit(1);
    std::atexit([] {
      const bool freed = cuda->cuMemFree_v2(pointer) == CUDA_SUCCESS;
      const bool refused = cuda->cuMemFree_v2(pointer) != CUDA_SUCCESS;
      ::_exit(freed && refused && take(*cuda, kMiB) ? 0 : 2);
    });
    std::exit(3);  // NOLINT(concurrency-mt-unsafe): the child has one thread
  });
  EXPECT_EQ(ShareUnderTest::wait_for_exit(child), 0);
}

// No fork handler runs: the child uses the parent's memory until it exits or calls exec.
TEST(OddPrograms, WhoUsesVforkIsStillItself) {
  ShareUnderTest share({.memory_limit = kProgramLimit});
  const CudaLibrary cuda(share.fence());
  ready(cuda);
  ASSERT_TRUE(take(cuda, 100 * kMiB));
  for (int i = 0; i < 20; ++i) {
    char name[] = "/bin/true";
    char* words[] = {name, nullptr};
    char* none[] = {nullptr};
    pid_t child = -1;
    ASSERT_EQ(::posix_spawn(&child, name, nullptr, nullptr, words, none), 0);  // by CLONE_VFORK
    EXPECT_EQ(ShareUnderTest::wait_for_exit(child), 0);
  }
  EXPECT_EQ(share.held(), 100 * kMiB);
  EXPECT_EQ(share.processes(), 1U);
  EXPECT_FALSE(take(cuda, 120 * kMiB));
  EXPECT_TRUE(take(cuda, 50 * kMiB));
}

// From now on this call fails with EPERM in this process.
bool forbid(long call) {
  const sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{std::size(program), const_cast<sock_filter*>(program)};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(OddPrograms, AProgramThatCannotReachTheDaemonDoesNotStart) {
  ShareUnderTest share({.memory_limit = kProgramLimit});
  for (const long call : {SYS_connect, SYS_socket, SYS_sendto, SYS_recvmsg, SYS_mmap}) {
    const pid_t child = share.process([&] {
      const CudaLibrary cuda(share.fence());
      if (call == SYS_mmap) return cuda.cuInit(0) == CUDA_SUCCESS ? 0 : 1;  // to compare with
      if (!forbid(call)) return 2;
      return cuda.cuInit(0) == CUDA_ERROR_SYSTEM_NOT_READY ? 0 : 1;
    });
    EXPECT_EQ(ShareUnderTest::wait_for_exit(child), 0) << "without system call " << call;
  }
}

TEST(OddPrograms, AProgramThatLosesTheDaemonKeepsItsLimits) {
  ShareUnderTest share({.memory_limit = kProgramLimit});
  const pid_t child = share.process([&] {
    const CudaLibrary cuda(share.fence());
    ready(cuda);
    for (const long call : {SYS_connect, SYS_sendto, SYS_memfd_create, SYS_futex}) {
      if (!forbid(call)) return 1;
    }
    if (take(cuda, kProgramLimit + kMiB)) return 2;
    return take(cuda, kProgramLimit / 2) && !take(cuda, kProgramLimit) ? 0 : 3;
  });
  EXPECT_EQ(ShareUnderTest::wait_for_exit(child), 0);
}

}  // namespace
}  // namespace gantry::fence::test
