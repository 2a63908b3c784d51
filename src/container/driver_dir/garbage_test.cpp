// SPDX-License-Identifier: Apache-2.0
#include "container/driver_dir/garbage.hpp"

#include "container/plan/driver_paths.hpp"
#include "support/tree.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gantry::driver_dir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kNow = "580.159.04-00000000000000aa";
constexpr auto kOld = "550.90.07-00000000000000bb";

class Collect : public ::testing::Test {
 protected:
  Collect() {
    add(kNow);
    add(kOld);
    tree_.link(std::string(plan::kCurrentDriverLink), kNow);
    processes_.file("1/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    processes_.file("1/ns/pid");
  }
  void add(const std::string& name) {
    const auto directory = std::string(plan::kDriverDirectories) + "/" + name;
    tree_.file(directory + "/manifest.json",
               "{\n  \"name\": \"" + name + "\",\n  \"files\": []\n}\n");
    tree_.file(directory + "/sets/compute/lib64/libcuda.so.1");
    tree_.link(directory + "/lib64", "/etc");
  }
  bool is_there(const std::string& name) const {
    return std::filesystem::exists(tree_.path(std::string(plan::kDriverDirectories) + "/" + name));
  }
  Result<GarbageResult> collect_now(std::chrono::seconds youngest = std::chrono::seconds(0)) {
    return collect_garbage(tree_.host(),
                           {.youngest = youngest,
                            .processes = processes_.root(),
                            .initial_pid_namespace = pid_space(processes_.path("1/ns/pid"))});
  }
  static std::uint64_t pid_space(const std::string& link) {
    struct stat status {};
    EXPECT_EQ(::stat(link.c_str(), &status), 0) << link;
    return status.st_ino;
  }
  test::Tree tree_;
  test::Tree processes_;
};

TEST_F(Collect, AllOfThemGoButThoseInUse) {
  const GarbageOptions options{.processes = processes_.root(),
                               .initial_pid_namespace = pid_space(processes_.path("1/ns/pid"))};
  processes_.file("7/mountinfo", std::string("30 1 8:1 /var/lib/gantry/driver/") + kOld +
                                     "/lib64 /x ro - ext4 /dev/sda1 rw\n");
  const auto busy = unpublish(tree_.host(), options);
  ASSERT_TRUE(busy.ok()) << busy.error().text();
  EXPECT_THAT(busy->in_use, ElementsAre(kOld));
  EXPECT_FALSE(is_there(kNow));
  EXPECT_FALSE(is_there("current"));
  processes_.remove("7");
  const auto done = unpublish(tree_.host(), options);
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_THAT(done->removed, ElementsAre(kOld));
}

TEST_F(Collect, AllOfThemStayWhileItIsUnsure) {
  EXPECT_FALSE(
      unpublish(tree_.host(), {.processes = processes_.root(), .initial_pid_namespace = 1}).ok());
  EXPECT_TRUE(is_there("current"));
  EXPECT_TRUE(is_there(kNow));
}

TEST_F(Collect, AZombieProcessKeepsNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const auto child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const auto done =
      collect_garbage(tree_.host(), {.youngest = std::chrono::seconds(0),
                                     .initial_pid_namespace = pid_space("/proc/self/ns/pid")});
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_THAT(done->removed, ElementsAre(kOld));
}

TEST_F(Collect, UnmountedDirectoriesAreRemoved) {
  const auto done = collect_now();
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_THAT(done->removed, ElementsAre(kOld));
  EXPECT_FALSE(is_there(kOld));
  EXPECT_TRUE(is_there(kNow));
}

TEST_F(Collect, WhatAContainerMountsStays) {
  processes_.file(
      "4711/mountinfo",
      std::string("300 299 8:1 /var/lib/gantry/driver/") + kOld +
          "/sets/compute/lib64 /usr/local/nvidia/lib64 ro,nosuid - ext4 /dev/sda1 rw\n");
  const auto done = collect_now();
  EXPECT_THAT(done->removed, IsEmpty());
  EXPECT_THAT(done->in_use, ElementsAre(kOld));
  EXPECT_TRUE(is_there(kOld));
}

TEST_F(Collect, WhatIsYoungStays) {
  EXPECT_THAT(collect_now(std::chrono::seconds(3600))->removed, IsEmpty());
  EXPECT_TRUE(is_there(kOld));
}

TEST_F(Collect, WithoutACurrentNothingGoes) {
  tree_.remove(std::string(plan::kCurrentDriverLink));
  EXPECT_FALSE(collect_now().ok());
  EXPECT_TRUE(is_there(kOld));
}

TEST_F(Collect, OtherDirectoriesAreLeftAlone) {
  tree_.file(std::string(plan::kDriverDirectories) + "/notes/mine.txt", "keep");
  ASSERT_TRUE(collect_now().ok());
  EXPECT_TRUE(is_there("notes/mine.txt"));
}

TEST_F(Collect, WhereOnlyAContainersProcessesAreSeenNothingGoes) {
  const auto done = collect_garbage(tree_.host(), {.youngest = std::chrono::seconds(0),
                                                   .processes = processes_.root(),
                                                   .initial_pid_namespace = 1});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Errc::Unsupported);
  EXPECT_THAT(done.error().text(), HasSubstr("in a pod with hostPID"));
  EXPECT_TRUE(is_there(kOld));
}

TEST_F(Collect, APodSeesTheMachinesProcessesBelowItsRoot) {
  test::Tree own;
  own.file("1/mountinfo").file("1/ns/pid");
  tree_.file("proc/1/ns/pid").file("proc/1/mountinfo");
  tree_.file("proc/4711/mountinfo", std::string("3 2 8:1 /driver/") + kOld + "/bin /x ro - e e\n");
  const auto done = collect_garbage(
      tree_.host(), {.youngest = std::chrono::seconds(0),
                     .processes = own.root(),
                     .initial_pid_namespace = pid_space(tree_.path("proc/1/ns/pid"))});
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_THAT(done->in_use, ElementsAre(kOld));
}

TEST_F(Collect, WhereTheFirstProcessIsHiddenNothingGoes) {
  processes_.file("self/ns/pid");
  processes_.remove("1").file("4711/mountinfo");
  const auto done = collect_garbage(
      tree_.host(), {.youngest = std::chrono::seconds(0),
                     .processes = processes_.root(),
                     .initial_pid_namespace = pid_space(processes_.path("self/ns/pid"))});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Errc::Denied);
  EXPECT_THAT(done.error().text(), HasSubstr("hidepid"));
  EXPECT_TRUE(is_there(kOld));
}

TEST_F(Collect, ARemovalThatWasInterruptedIsFinished) {
  add(".gone-535.1.2-00000000000000cc");
  const auto done = collect_now(std::chrono::seconds(3600));
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_THAT(done->removed, ElementsAre("535.1.2-00000000000000cc"));
  EXPECT_FALSE(is_there(".gone-535.1.2-00000000000000cc"));
  EXPECT_TRUE(is_there(kOld)) << "it is young";
}

TEST_F(Collect, AnInterruptedRemovalOfWhatIsMountedStaysAsItIs) {
  add(std::string(".gone-") + kOld);
  processes_.file("4711/mountinfo",
                  std::string("3 2 8:1 /driver/.gone-") + kOld + "/bin /x ro - e e\n");
  const auto done = collect_now(std::chrono::seconds(3600));
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_THAT(done->removed, IsEmpty());
  EXPECT_THAT(done->in_use, ElementsAre(kOld));
  EXPECT_TRUE(is_there(std::string(".gone-") + kOld));
}

TEST_F(Collect, OneThatCannotGoDoesNotKeepTheOthers) {
  constexpr auto kDeep = "535.1.2-00000000000000cc";  // deeper than any of ours
  add(kDeep);
  tree_.file(std::string(plan::kDriverDirectories) + "/" + kDeep + "/a/b/c/d/e/f/g/h/i/j/k/l");
  const auto done = collect_now();
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_THAT(done->removed, ElementsAre(kOld));
  ASSERT_THAT(done->failed, SizeIs(1));
  EXPECT_THAT(done->failed[0], HasSubstr(std::string(".gone-") + kDeep));
  EXPECT_FALSE(is_there(kOld));
  EXPECT_FALSE(is_there(kDeep)) << "what is half gone must not look whole";
}

TEST_F(Collect, ProcessesThatEndMeanwhileAreNoTrouble) {
  processes_.directory("4712");
  EXPECT_THAT(collect_now()->removed, ElementsAre(kOld));
}

}  // namespace
}  // namespace gantry::driver_dir
