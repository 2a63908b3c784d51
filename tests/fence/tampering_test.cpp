// SPDX-License-Identifier: Apache-2.0
// A tenant owns its processes: it may write into their memory, by ptrace or otherwise, and report
// false values. It cannot write the host's limits, and the host detects what it does.
#include "fence/machine_with_daemon.hpp"
#include "sharing/daemon/peer_for_test.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

namespace gantry::fence::test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::Field;

class Tampering : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gantry::test::Machine::has_libraries()) GTEST_SKIP() << "no simulated libraries";
  }
  MachineWithDaemon machine_;
};

std::uint64_t address_of(const volatile void* what) {
  return reinterpret_cast<std::uint64_t>(what);
}

// A process that lets its parent trace it and stops; afterwards it does `rest`.
pid_t traced(const std::function<void()>& before, const std::function<void()>& rest) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  before();
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
  ::raise(SIGSTOP);
  rest();
  for (;;) ::pause();
}

// False: this machine does not allow ptrace.
bool stands_still(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return false;
  EXPECT_TRUE(WIFSTOPPED(status));
  return true;
}

bool poke(pid_t pid, std::uint64_t address, std::uint64_t word) {
  return ::ptrace(PTRACE_POKEDATA, pid, address, word) == 0;
}

bool write_by_call(pid_t pid, std::uint64_t address, std::uint64_t word) {
  const iovec from{&word, sizeof word};
  const iovec to{reinterpret_cast<void*>(address), sizeof word};
  return ::process_vm_writev(pid, &from, 1, &to, 1, 0) == static_cast<ssize_t>(sizeof word);
}

bool write_by_file(pid_t pid, std::uint64_t address, std::uint64_t word) {
  const int file = ::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDWR | O_CLOEXEC);
  const bool written = ::pwrite(file, &word, sizeof word, static_cast<off_t>(address)) ==
                       static_cast<ssize_t>(sizeof word);
  ::close(file);
  return written;
}

TEST_F(Tampering, NoWayIntoAProcessLeadsToTheLimitsOfItsShare) {
  const auto made = machine_.make({.name = "a", .memory = "2GiB"});
  const SharedCount limit;
  const SharedCount own;  // something that can be written, to compare with
  static std::uint64_t writable = 0;
  const pid_t pid = traced(
      [&] {
        static const daemon::AttachedPeer peer(made.directory + "/socket");
        if (!peer.valid()) ::_exit(1);
        *limit = address_of(&peer.limits().gpu[0].memory_limit);
        *own = address_of(&writable);
      },
      [] {});
  if (!stands_still(pid)) GTEST_SKIP() << "ptrace is not allowed here";
  for (const auto write : {poke, write_by_call, write_by_file}) {
    EXPECT_TRUE(write(pid, *own, 7));
    EXPECT_FALSE(write(pid, *limit, UINT64_MAX));
  }
  const daemon::AttachedPeer peer(made.directory + "/socket");
  ASSERT_TRUE(peer.valid());
  EXPECT_EQ(peer.limits().gpu[0].memory_limit, 2 * kGiB);
  end(pid);
}

#ifdef __x86_64__
// Replaces the fence's hook by a jump to the driver's function.
bool divert(pid_t pid, std::uint64_t hook, std::uint64_t to) {
  std::array<std::uint8_t, 16> code{0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
  std::memcpy(code.data() + 2, &to, sizeof to);
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), code.data(), sizeof words);
  return poke(pid, hook, words[0]) && poke(pid, hook + sizeof words[0], words[1]);
}

TEST_F(Tampering, WhoRewritesItsOwnFenceIsSeenAllTheSame) {
  machine_.make({.name = "a", .memory = "2GiB"});
  const SharedCount hook;
  const SharedCount real;
  const SharedCount taken;
  static const CudaLibrary* cuda = nullptr;
  const pid_t pid = traced(
      [&] {
        cuda = new CudaLibrary(machine_.fence("a"));
        sim::cuda::ready(*cuda);
        const CudaLibrary driver(machine_.driver());
        *hook = reinterpret_cast<std::uint64_t>(cuda->cuMemAlloc_v2);
        *real = reinterpret_cast<std::uint64_t>(driver.cuMemAlloc_v2);
        CUdeviceptr memory = 0;
        if (cuda->cuMemAlloc_v2(&memory, 8 * kGiB) != CUDA_ERROR_OUT_OF_MEMORY) ::_exit(1);
      },
      [&] {
        CUdeviceptr memory = 0;
        *taken = cuda->cuMemAlloc_v2(&memory, 8 * kGiB) == CUDA_SUCCESS ? 1 : 2;
      });
  if (!stands_still(pid)) GTEST_SKIP() << "ptrace is not allowed here";
  ASSERT_TRUE(divert(pid, *hook, *real));
  ASSERT_EQ(::ptrace(PTRACE_DETACH, pid, nullptr, nullptr), 0);
  EXPECT_TRUE(ShareUnderTest::until([&] { return *taken != 0; }));
  EXPECT_EQ(*taken, 1U) << "it is past its fence";
  auto asking = machine_.client();
  EXPECT_TRUE(ShareUnderTest::until([&] { return !asking.show("a")->findings.empty(); }));
  EXPECT_THAT(asking.show("a")->findings,
              Contains(Field(&daemon::FindingState::pid, static_cast<std::uint32_t>(pid))));
  end(pid);
}
#endif

// The cost of a context is learned from reports of processes. A false report must not affect
// another tenant, whose contexts would no longer fit.
TEST_F(Tampering, WhatATenantSaysOfItsContextsIsNoNeighboursCost) {
  const auto bad = machine_.make({.name = "bad", .memory = "50%"});
  const auto good = machine_.make({.name = "good", .memory = "10GiB"});
  const daemon::AttachedPeer neighbour(good.directory + "/socket");
  ASSERT_TRUE(neighbour.valid());
  const auto& estimate = neighbour.limits().gpu[0].context_estimate;
  const auto usual = __atomic_load_n(&estimate, __ATOMIC_ACQUIRE);
  const SharedCount learned;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const daemon::AttachedPeer peer(bad.directory + "/socket");
    const CudaLibrary raw(machine_.driver());
    sim::cuda::ready(raw);
    CUdeviceptr memory = 0;
    if (!peer.valid() || raw.cuMemAlloc_v2(&memory, 40 * kGiB) != CUDA_SUCCESS) ::_exit(1);
    __atomic_store_n(&peer.row().contexts, 1U, __ATOMIC_SEQ_CST);
    const auto& own = peer.limits().gpu[0].context_estimate;
    while (__atomic_load_n(&own, __ATOMIC_ACQUIRE) < 40 * kGiB) ::usleep(1000);
    *learned = 1;
    for (;;) ::pause();
  }
  EXPECT_TRUE(ShareUnderTest::until([&] { return *learned == 1; })) << "it believes so itself";
  EXPECT_EQ(__atomic_load_n(&estimate, __ATOMIC_ACQUIRE), usual);
  const auto late = machine_.make({.name = "late", .memory = "10GiB"});
  const daemon::AttachedPeer later(late.directory + "/socket");
  ASSERT_TRUE(later.valid());
  EXPECT_EQ(later.limits().gpu[0].context_estimate, usual);
  end(pid);
}

// Tenants can also empty the page that they write.
TEST_F(Tampering, HolesInThePageStopNoTenant) {
  const auto bad = machine_.make({.name = "bad", .memory = "10GiB", .compute = "20%"});
  const auto good = machine_.make({.name = "good", .memory = "10GiB", .compute = "50%"});
  const SharedCount punched;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const daemon::TestPeer peer(bad.directory + "/socket");
    daemon::AttachReply got;
    if (!peer.hello() || !peer.receive(got)) ::_exit(1);
    const auto size = static_cast<off_t>(got.welcome.usage_size);
    constexpr int kHole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    const auto limits = static_cast<off_t>(got.welcome.limits_size);
    if (::fallocate(got.limits.get(), kHole, 0, limits) == 0) ::_exit(2);
    for (;;) {
      if (::fallocate(got.usage.get(), kHole, 0, size) != 0) ::_exit(3);
      ++*punched;
    }
  }
  const daemon::AttachedPeer neighbour(good.directory + "/socket");
  ASSERT_TRUE(neighbour.valid());
  const auto& heartbeat = neighbour.limits().heartbeat_ns;
  EXPECT_TRUE(ShareUnderTest::until([&] { return *punched > 100; }));
  for (int i = 0; i < 5; ++i) {
    const auto last = __atomic_load_n(&heartbeat, __ATOMIC_ACQUIRE);
    EXPECT_TRUE(ShareUnderTest::until(
        [&] { return __atomic_load_n(&heartbeat, __ATOMIC_ACQUIRE) > last; }));
  }
  EXPECT_EQ(machine_.client().show("bad")->processes.size(), 1U);
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0) << "it has not ended by itself";
  end(pid);
}

}  // namespace
}  // namespace gantry::fence::test
