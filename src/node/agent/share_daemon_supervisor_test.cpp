// SPDX-License-Identifier: Apache-2.0
#include "node/agent/share_daemon_supervisor.hpp"

#include "support/machine.hpp"
#include "support/paths.hpp"

#include <signal.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include <functional>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class KeptByTheAgent : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
  }
  void TearDown() override {
    for (const auto* name : {"one", "two"}) {
      auto client = daemon::Client::connect(host_);
      if (client.ok()) (void)client->remove(name).ok();  // the share daemon exits with them
    }
  }
  bool until(const std::function<bool()>& so) {
    const auto end = Clock::now() + 20s;
    while (!so()) {
      if (Clock::now() > end) return false;
      (void)loop_->turn(5ms).ok();
    }
    return true;
  }
  static pid_t pid_of(const daemon::Client& client) {
    ucred peer{};
    socklen_t size = sizeof peer;
    ::getsockopt(client.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
    return peer.pid;
  }

  test::Machine machine_{"h200x8"};
  sys::Host host_ = machine_.host();
  std::unique_ptr<sys::Loop> loop_ = *sys::Loop::make();
  Log log_{options::LogFormat::Text, 0, [](std::string_view) {}};
  std::vector<std::string> program_{test::built("test-programs/share_daemon_program")};
};

TEST_F(KeptByTheAgent, WithoutSharesThereIsNoKeeper) {
  const ShareDaemonSupervisor supervisor(*loop_, host_, log_,
                                         {.program = program_, .look_every = 10ms});
  for (int i = 0; i < 20; ++i) (void)loop_->turn(10ms).ok();
  EXPECT_FALSE(supervisor.runs());
  EXPECT_FALSE(host_.exists(daemon::kControlSocket));
}

TEST_F(KeptByTheAgent, AKilledKeeperIsBackWithItsShares) {
  const auto made = share_for_container(host_, program_, "one", {.memory = "1GiB"});
  ASSERT_TRUE(made.ok()) << made.error().text();
  const ShareDaemonSupervisor supervisor(*loop_, host_, log_,
                                         {.program = program_, .look_every = 10ms});
  ASSERT_TRUE(until([&] { return supervisor.runs(); }));
  const auto first = pid_of(*daemon::Client::connect(host_));
  ASSERT_GT(first, 1);
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  ASSERT_TRUE(until([&] {
    auto client = daemon::Client::connect(host_);
    return client.ok() && pid_of(*client) != first && client->show("one").ok();
  }));
}

TEST_F(KeptByTheAgent, AContainerThatHasAShareGetsTheSame) {
  const auto first = share_for_container(host_, program_, "one", {.memory = "1GiB"});
  const auto again = share_for_container(host_, program_, "one", {.memory = "1GiB"});
  const auto other = share_for_container(host_, program_, "two", {.memory = "1GiB"});
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(first->directory, again->directory);
  EXPECT_NE(first->directory, other->directory);
}

}  // namespace
}  // namespace gantry::agent
