// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/container_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace gantry::runtime {
namespace {

using testing::HasSubstr;

// A child that waits, in mounts of its own or ours.
class WaitingChild {
 public:
  explicit WaitingChild(int unshared) {
    std::array<int, 2> ready{};
    if (::pipe2(ready.data(), O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      const char ok = unshared == 0 || ::unshare(unshared) == 0 ? 'y' : 'n';
      if (::write(ready[1], &ok, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char ok = 'n';
    ok_ = ::read(ready[0], &ok, 1) == 1 && ok == 'y';
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~WaitingChild() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }
  bool ok() const { return ok_; }

 private:
  pid_t pid_ = -1;
  bool ok_ = false;
};

TEST(ContainerProcess, IsGoneWithItsProcess) {
  WaitingChild child(0);
  const auto process = ContainerProcess::open(child.pid());
  ASSERT_TRUE(process.ok());
  EXPECT_TRUE(process->alive());
  child.end();
  EXPECT_FALSE(process->alive());
  EXPECT_FALSE(process->cgroup().ok());
  EXPECT_FALSE(process->enter_mounts().ok());
}

TEST(ContainerProcess, AnUnusedNumberIsReported) {
  const auto nobody = ContainerProcess::open(0x3fffffff);
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error().code(), Errc::NotFound);
  EXPECT_THAT(nobody.error().text(), HasSubstr("there is no process 1073741823"));
}

TEST(ContainerProcess, KnowsItsCgroup) {
  const auto process = ContainerProcess::open(::getpid());
  ASSERT_TRUE(process.ok());
  const auto text = process->cgroup();
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr(":/"));
}

TEST(ContainerProcess, OneThatSharesOurMountsIsNoContainer) {
  const WaitingChild child(0);
  const auto process = ContainerProcess::open(child.pid());
  ASSERT_TRUE(process.ok());
  const auto entered = process->enter_mounts();
  ASSERT_FALSE(entered.ok());
  EXPECT_EQ(entered.error().code(), Errc::Denied);
  EXPECT_THAT(entered.error().text(), HasSubstr("would be made on the host"));
}

TEST(ContainerProcess, MountsOfItsOwnAreEntered) {
  const WaitingChild child(CLONE_NEWNS);
  if (!child.ok()) GTEST_SKIP() << "needs root for a mount namespace";
  const pid_t visitor = ::fork();
  if (visitor == 0) {
    const auto process = ContainerProcess::open(child.pid());
    ::_exit(process.ok() && process->enter_mounts().ok() ? 0 : 1);
  }
  int status = 1;
  ::waitpid(visitor, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace gantry::runtime
