// SPDX-License-Identifier: Apache-2.0
#include "node/agent/share_daemon_supervisor.hpp"

#include "support/machine.hpp"
#include "support/paths.hpp"

#include <signal.h>

#include <gtest/gtest.h>

#include <functional>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

policy::Share gibibyte(const std::string& name) {
  return {.name = name, .memory = policy::MemoryLimit{.bytes = std::uint64_t{1} << 30}};
}

class ShareDaemonSupervisorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
  }
  void TearDown() override {
    auto client = daemon::Client::connect(host_);
    if (client.ok()) (void)client->remove("one").ok();  // the share daemon exits with it
  }
  bool until(const std::function<bool()>& so) {
    const auto end = Clock::now() + 20s;
    while (!so()) {
      if (Clock::now() > end) return false;
      (void)loop_->turn(5ms).ok();
    }
    return true;
  }

  test::Machine machine_{"h200x8"};
  sys::Host host_ = machine_.host();
  std::unique_ptr<sys::Loop> loop_ = *sys::Loop::make();
  Log log_{LogForm::Klog, 0, [](std::string_view) {}};
  std::vector<std::string> program_{test::built("test-programs/share_daemon_program")};
};

TEST_F(ShareDaemonSupervisorTest, WithoutSharesThereIsNoDaemon) {
  const ShareDaemonSupervisor supervisor(
      *loop_, host_, log_, {.program = program_, .look_every = 10ms, .rest_every = 10ms});
  for (int i = 0; i < 20; ++i) (void)loop_->turn(10ms).ok();
  EXPECT_FALSE(supervisor.runs());
  EXPECT_FALSE(host_.exists(daemon::kControlSocket));
}

TEST_F(ShareDaemonSupervisorTest, AKilledDaemonIsBackWithItsShares) {
  auto starter = daemon::Client::connect_or_start(host_, program_);
  ASSERT_TRUE(starter.ok()) << starter.error().text();
  ASSERT_TRUE(starter->create(gibibyte("one")).ok());
  const ShareDaemonSupervisor supervisor(
      *loop_, host_, log_, {.program = program_, .look_every = 10ms, .rest_every = 10ms});
  ASSERT_TRUE(until([&] { return supervisor.runs(); }));
  const auto first = daemon::Client::connect(host_)->daemon_pid();
  ASSERT_GT(first, 1);
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  ASSERT_TRUE(until([&] {
    auto client = daemon::Client::connect(host_);
    return client.ok() && client->daemon_pid() != first && client->show("one").ok();
  }));
}

TEST_F(ShareDaemonSupervisorTest, ADaemonThatHangsIsReplaced) {
  auto starter = daemon::Client::connect_or_start(host_, program_);
  ASSERT_TRUE(starter.ok()) << starter.error().text();
  ASSERT_TRUE(starter->create(gibibyte("one")).ok());
  const ShareDaemonSupervisor supervisor(
      *loop_, host_, log_,
      {.program = program_, .look_every = 10ms, .rest_every = 10ms, .hung_after = 1'000ms});
  ASSERT_TRUE(until([&] { return supervisor.runs(); }));
  const auto first = starter->daemon_pid();
  ASSERT_GT(first, 1);
  ASSERT_EQ(::kill(first, SIGSTOP), 0);
  ASSERT_TRUE(until([&] {
    auto client = daemon::Client::connect(host_);
    return client.ok() && client->daemon_pid() != first && client->show("one").ok();
  }));
}

}  // namespace
}  // namespace gantry::agent
