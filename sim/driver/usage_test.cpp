// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/usage.h"

#include "sim/driver/usage_internal.hpp"
#include "support/tree.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace gantry::sim {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kGiB = 1ULL << 30U;
constexpr std::uint64_t kNoLimit = 1ULL << 50U;

// A child that does something, reports it, and waits to be killed.
class Child {
 public:
  explicit Child(const std::function<int()>& work) {
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      const char result = static_cast<char>(work());
      if (::write(ready[1], &result, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char result = 127;
    if (::read(ready[0], &result, 1) == 1) result_ = static_cast<unsigned char>(result);
    ::close(ready[0]);
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }
  int result() const { return result_; }

 private:
  pid_t pid_ = 0;
  int result_ = 127;
};

class Usage : public ::testing::Test {
 protected:
  Usage() {
    tree_.file("libcuda.so.1", "not much of a library");
    path_ = tree_.path("libcuda.so.1");
  }
  ~Usage() override {
    for (gantry_sim_usage* usage : opened_) gantry_sim_usage_close(usage);
  }
  gantry_sim_usage* open() { return opened_.emplace_back(gantry_sim_usage_open(path_.c_str())); }

  static std::vector<gantry_sim_use> list(gantry_sim_usage* usage, uint32_t gpu = 0) {
    std::vector<gantry_sim_use> rows(64);
    rows.resize(std::min(gantry_sim_usage_list(usage, gpu, rows.data(), rows.size()), rows.size()));
    return rows;
  }

  test::Tree tree_;
  std::string path_;
  std::vector<gantry_sim_usage*> opened_;
};

TEST_F(Usage, OfAFileThatIsNotThereCannotBeOpened) {
  EXPECT_EQ(gantry_sim_usage_open(tree_.path("nothing").c_str()), nullptr);
}

TEST_F(Usage, GrowsAndShrinksByTheByte) {
  gantry_sim_usage* usage = open();
  ASSERT_NE(usage, nullptr);
  EXPECT_EQ(gantry_sim_usage_add(usage, 3, -1, -1, 100, kNoLimit), 0);
  EXPECT_EQ(gantry_sim_usage_add(usage, 3, -1, -1, 23, kNoLimit), 0);
  EXPECT_EQ(gantry_sim_usage_total(usage, 3, -1, -1), 123U);
  EXPECT_EQ(gantry_sim_usage_total(usage, 2, -1, -1), 0U);
  gantry_sim_usage_sub(usage, 3, -1, -1, 22);
  EXPECT_EQ(gantry_sim_usage_total(usage, 3, -1, -1), 101U);
  gantry_sim_usage_sub(usage, 3, -1, -1, 1000);
  EXPECT_THAT(list(usage), IsEmpty());
}

TEST_F(Usage, RefusesWhatIsOverTheLimitAndKeepsWhatWasThere) {
  gantry_sim_usage* usage = open();
  EXPECT_EQ(gantry_sim_usage_add(usage, 0, -1, -1, 3 * kGiB, 4 * kGiB), 0);
  EXPECT_EQ(gantry_sim_usage_add(usage, 0, -1, -1, kGiB + 1, 4 * kGiB), -1);
  EXPECT_EQ(gantry_sim_usage_add(usage, 0, -1, -1, ~0ULL, 4 * kGiB), -1);
  EXPECT_EQ(gantry_sim_usage_add(usage, 0, -1, -1, kGiB, 4 * kGiB), 0);
  EXPECT_EQ(gantry_sim_usage_total(usage, 0, -1, -1), 4 * kGiB);
}

TEST_F(Usage, OfInstancesIsKeptApartAndCountsForTheirGpu) {
  gantry_sim_usage* usage = open();
  EXPECT_EQ(gantry_sim_usage_add(usage, 1, 7, 0, 10, 100), 0);
  EXPECT_EQ(gantry_sim_usage_add(usage, 1, 9, 0, 20, 100), 0);
  EXPECT_EQ(gantry_sim_usage_add(usage, 1, 9, 1, 30, 100), 0);
  EXPECT_EQ(gantry_sim_usage_total(usage, 1, 7, 0), 10U);
  EXPECT_EQ(gantry_sim_usage_total(usage, 1, 9, 1), 30U);
  EXPECT_EQ(gantry_sim_usage_total(usage, 1, 9, -1), 50U);
  EXPECT_EQ(gantry_sim_usage_total(usage, 1, -1, -1), 60U);
  EXPECT_EQ(gantry_sim_usage_add(usage, 1, 9, 0, 51, 100), -1)
      << "compute instances share their GPU instance's memory";
  EXPECT_EQ(gantry_sim_usage_add(usage, 1, 99, 0, 1, 100), -2) << "no card has such an instance";
}

TEST_F(Usage, KnowsWhoIsAnMpsServerAndWhoIsItsClient) {
  gantry_sim_usage* ordinary = open();
  gantry_sim_usage* server = open();
  gantry_sim_usage* client = open();
  EXPECT_EQ(gantry_sim_usage_add(ordinary, 0, -1, -1, 1, kNoLimit), 0);
  const auto number = gantry_sim_usage_serve(server);
  ASSERT_NE(number, 0U);
  EXPECT_EQ(gantry_sim_usage_add(server, 0, -1, -1, 2, kNoLimit), 0);
  EXPECT_EQ(gantry_sim_usage_join(client, number), 0);
  EXPECT_EQ(gantry_sim_usage_add(client, 0, -1, -1, 3, kNoLimit), 0);
  for (const auto& row : list(ordinary)) {
    EXPECT_EQ(row.mps_server, row.bytes == 1 ? 0U : number) << row.bytes;
    EXPECT_EQ(row.mps_server == row.slot + 1, row.bytes == 2);
  }
  EXPECT_EQ(gantry_sim_usage_total(ordinary, 0, -1, -1), 6U);
}

TEST_F(Usage, TwoDescriptorsInOneProcessAreTwoHolders) {
  gantry_sim_usage* first = open();
  gantry_sim_usage* second = open();
  EXPECT_EQ(gantry_sim_usage_add(first, 0, -1, -1, 1, kNoLimit), 0);
  EXPECT_EQ(gantry_sim_usage_add(second, 0, -1, -1, 2, kNoLimit), 0);
  EXPECT_EQ(gantry_sim_usage_total(first, 0, -1, -1), 3U);
  const auto rows = list(first);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_NE(rows[0].slot, rows[1].slot);
  EXPECT_EQ(rows[0].pid, ::getpid());
  EXPECT_EQ(rows[1].pid, ::getpid());
}

TEST_F(Usage, OfOtherProcessesIsSeenWithTheirPids) {
  gantry_sim_usage* reader = open();
  auto hold = [&](std::uint32_t gpu, std::uint64_t bytes) {
    return
        [this, gpu, bytes] { return gantry_sim_usage_add(open(), gpu, -1, -1, bytes, kNoLimit); };
  };
  const Child one(hold(0, kGiB));
  const Child two(hold(5, 141 * kGiB));
  EXPECT_EQ(one.result(), 0);
  EXPECT_EQ(two.result(), 0);
  const auto first = list(reader, 0);
  const auto second = list(reader, 5);
  ASSERT_THAT(first, SizeIs(1));
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_THAT(list(reader, 1), IsEmpty());
  EXPECT_EQ(first[0].pid, one.pid());
  EXPECT_EQ(first[0].bytes, kGiB);
  EXPECT_EQ(second[0].pid, two.pid());
  EXPECT_EQ(second[0].bytes, 141 * kGiB);
  EXPECT_EQ(second[0].gi_id, -1);
}

TEST_F(Usage, OfAKilledProcessIsGivenBack) {
  gantry_sim_usage* reader = open();
  Child child([&] { return gantry_sim_usage_add(open(), 0, -1, -1, kGiB, kNoLimit); });
  EXPECT_EQ(gantry_sim_usage_add(reader, 0, -1, -1, kGiB, kGiB), -1);
  child.kill();
  EXPECT_EQ(gantry_sim_usage_total(reader, 0, -1, -1), 0U);
  EXPECT_EQ(gantry_sim_usage_add(reader, 0, -1, -1, kGiB, kGiB), 0);
}

TEST_F(Usage, TogetherNeverPassesTheLimitHoweverManyAsk) {
  constexpr int kProcesses = 8;
  std::vector<pid_t> pids;
  gantry_sim_usage* reader = open();
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      gantry_sim_usage* mine = open();
      for (int n = 0; n < 50; ++n) gantry_sim_usage_add(mine, 0, -1, -1, 7, 1000);
      for (;;) ::pause();
    }
    pids.push_back(pid);
  }
  // 142 times 7 is the most that fits.
  for (int tries = 0; tries < 1000 && gantry_sim_usage_total(reader, 0, -1, -1) < 994; ++tries)
    ::usleep(5000);
  EXPECT_EQ(gantry_sim_usage_total(reader, 0, -1, -1), 994U);
  for (pid_t pid : pids) ::kill(pid, SIGKILL);
  for (pid_t pid : pids) ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(gantry_sim_usage_total(reader, 0, -1, -1), 0U);
}

TEST_F(Usage, OfTheParentOutlivesAForkedChildAndIsNotTheChilds) {
  gantry_sim_usage* usage = open();
  EXPECT_EQ(gantry_sim_usage_add(usage, 0, -1, -1, 5, kNoLimit), 0);
  Child child([&] {
    gantry_sim_usage_after_fork(usage);
    return gantry_sim_usage_add(usage, 1, -1, -1, 6, kNoLimit);
  });
  EXPECT_EQ(child.result(), 0);
  const auto ours = list(usage, 0);
  const auto its = list(usage, 1);
  ASSERT_THAT(ours, SizeIs(1));
  ASSERT_THAT(its, SizeIs(1));
  EXPECT_EQ(ours[0].pid, ::getpid());
  EXPECT_EQ(its[0].pid, child.pid());
  child.kill();
  EXPECT_EQ(gantry_sim_usage_total(usage, 0, -1, -1), 5U);
  EXPECT_EQ(gantry_sim_usage_total(usage, 1, -1, -1), 0U);
}

// Runs in its own mount and pid namespaces. Returns 0, or the step that failed.
int mount_read_only(const std::string& from, const std::string& to) {
  if (::unshare(CLONE_NEWNS | CLONE_NEWPID) != 0) return 40;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 41;
  if (::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) != 0) return 42;
  const unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY;
  return ::mount(nullptr, to.c_str(), nullptr, flags, nullptr) != 0 ? 43 : 0;
}

TEST_F(Usage, WorksThroughAReadOnlyBindMountInAnotherPidNamespace) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: mounts, namespaces";
  tree_.file("mounted", "");
  const std::string mounted = tree_.path("mounted");
  int pid_pipe[2];
  ASSERT_EQ(::pipe2(pid_pipe, O_CLOEXEC), 0);
  Child outer([&] {
    if (const int failed = mount_read_only(path_, mounted)) return failed;
    const pid_t inner = ::fork();
    if (inner == 0) {
      // The host's /proc shows the wrong namespace here, as before a container's own /proc is
      // mounted.
      if (::mount("proc", "/proc", "proc", 0, nullptr) != 0) ::_exit(44);
      const char result = static_cast<char>(
          gantry_sim_usage_add(gantry_sim_usage_open(mounted.c_str()), 0, -1, -1, 77, kNoLimit));
      if (::write(pid_pipe[1], &result, 1) != 1) ::_exit(45);
      for (;;) ::pause();
    }
    char result = 46;
    if (::read(pid_pipe[0], &result, 1) != 1) return 47;
    if (::write(pid_pipe[1], &inner, sizeof inner) != sizeof inner) return 48;
    return static_cast<int>(result);
  });
  if (outer.result() >= 40 && outer.result() <= 44) GTEST_SKIP() << "no mounts or namespaces here";
  ASSERT_EQ(outer.result(), 0);
  pid_t inner = 0;
  ASSERT_EQ(::read(pid_pipe[0], &inner, sizeof inner), static_cast<ssize_t>(sizeof inner));
  gantry_sim_usage* reader = open();
  const auto rows = list(reader);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].bytes, 77U);
  EXPECT_EQ(rows[0].pid, inner) << "pid 1 of the container, as the host sees it";
  EXPECT_EQ(list(reader)[0].pid, inner) << "the second time from memory";
  ::kill(inner, SIGKILL);
}

TEST(InnermostPid, IsTheLastNumberOfItsLine) {
  int32_t pid = 0;
  int depth = 0;
  EXPECT_TRUE(innermost_pid("Name:\tx\nNSpid:\t4711\t12\t1\nNSpgid:\t9\n", pid, depth));
  EXPECT_EQ(pid, 1);
  EXPECT_EQ(depth, 3);
  EXPECT_FALSE(innermost_pid("Name:\tx\n", pid, depth));
  EXPECT_FALSE(innermost_pid("Name:\tx\nNSpid:\tmany\n", pid, depth));
  EXPECT_FALSE(innermost_pid("", pid, depth));
}

}  // namespace
}  // namespace gantry::sim
