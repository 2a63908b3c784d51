// SPDX-License-Identifier: Apache-2.0
// The kernel gives the pid of a process that has ended to another one, perhaps before the loop has
// reported the end.
#include "sharing/daemon/attached_processes.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>

namespace gantry::daemon {
namespace {

class AttachedProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<GpuPageValues> gpus{{.uuid = {1}, .memory_limit = 1, .memory_total = 2}};
    auto pages = SharedPages::make("one", gpus);
    ASSERT_TRUE(pages.ok()) << pages.error().text();
    pages_.emplace(*std::move(pages));
    attached_.emplace(*loop_, *pages_, AttachedProcesses::Callbacks{});
    tenant_ = ::fork();
    if (tenant_ == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  void TearDown() override { end_tenant(); }

  PeerIdentity tenant() const {
    return {.pid = tenant_,
            .pidfd = sys::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, tenant_, 0)))};
  }
  void end_tenant() const {
    ::kill(tenant_, SIGKILL);
    ::waitpid(tenant_, nullptr, 0);
  }

  pid_t tenant_ = -1;
  std::unique_ptr<sys::Loop> loop_ = *sys::Loop::make();
  std::optional<SharedPages> pages_;
  std::optional<AttachedProcesses> attached_;
};

TEST_F(AttachedProcessesTest, APidWhoseProcessHasEndedIsUnknown) {
  ASSERT_TRUE(attached_->join(tenant()).ok());
  ASSERT_NE(attached_->of_pid(tenant_), nullptr);
  end_tenant();  // the loop does not run, so nobody has reported it
  EXPECT_EQ(attached_->of_pid(tenant_), nullptr);
}

TEST_F(AttachedProcessesTest, AProcessThatHasEndedGetsNoSlot) {
  auto late = tenant();
  end_tenant();
  const auto slot = attached_->join(std::move(late));
  ASSERT_FALSE(slot.ok());
  EXPECT_EQ(slot.error().code(), Errc::NotFound);
  EXPECT_TRUE(attached_->by_slot().empty());
}

TEST(PeerIdentityTest, ASocketWhoseOtherEndIsClosedHasNoPeer) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()), 0);
  const sys::UniqueFd ours(ends[0]);
  sys::UniqueFd theirs(ends[1]);
  ASSERT_EQ(::send(theirs.get(), "hello", 5, 0), 5);
  EXPECT_FALSE(is_hung_up(ours.get()));
  theirs.reset();
  EXPECT_TRUE(is_hung_up(ours.get())) << "its last message is still there to be read";
}

TEST(PeerIdentityTest, AStartIsKnownToATick) {
  const auto before = boottime_ns();
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto after = boottime_ns();
  const auto started = start_interval(child);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_GT(started.latest_ns, before);
  EXPECT_LE(started.earliest_ns, after);
}

}  // namespace
}  // namespace gantry::daemon
