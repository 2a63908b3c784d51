// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/hook/register_with_share_daemon.hpp"

#include "base/sys/unique_fd.hpp"
#include "support/tree.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>

namespace gantry::runtime {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RegisterTest : public ::testing::Test {
 protected:
  RegisterTest() { tree_.directory("run/gantry"); }

  Status register_share(std::chrono::milliseconds restart = 2s) const {
    return register_with_share_daemon(tree_.host(), "blue", 7, restart);
  }

  // A daemon that comes up after a while and takes one request.
  std::jthread answer_after(std::chrono::milliseconds pause, std::string answer) {
    return std::jthread([this, pause, answer = std::move(answer)] {
      std::this_thread::sleep_for(pause);
      const sys::UniqueFd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      const auto path = tree_.path("run/gantry/keeper.sock");
      ASSERT_LT(path.size(), sizeof address.sun_path);
      std::memcpy(address.sun_path, path.data(), path.size());
      ::unlink(path.c_str());
      ASSERT_EQ(::bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
      ASSERT_EQ(::listen(listening.get(), 4), 0);
      const sys::UniqueFd peer(::accept(listening.get(), nullptr, nullptr));
      std::array<char, 512> request{};
      const auto got = ::recv(peer.get(), request.data(), request.size(), 0);
      EXPECT_THAT(std::string(request.data(), static_cast<std::size_t>(got)),
                  HasSubstr(R"("name":"blue")"));
      ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    });
  }

  test::Tree tree_;
};

TEST_F(RegisterTest, AShareWithoutARecordIsGone) {
  const auto status = register_share();
  EXPECT_EQ(status.error().code(), Errc::NotFound);
  EXPECT_THAT(status.error().text(), AllOf(HasSubstr("the share blue no longer exists"),
                                           HasSubstr("`gantry share create blue`")));
}

TEST_F(RegisterTest, ADaemonThatIsBeingRestartedIsWaitedFor) {
  tree_.file("run/gantry/shares/blue/share.json", "{}");
  const auto daemon = answer_after(200ms, "{\"ok\":true}\n");
  const auto status = register_share(10s);
  EXPECT_TRUE(status.ok()) << status.error().text();
}

TEST_F(RegisterTest, ADaemonThatStaysAwayIsNotCalledAMissingShare) {
  tree_.file("run/gantry/shares/blue/share.json", "{}");
  const auto status = register_share(100ms);
  EXPECT_EQ(status.error().code(), Errc::Busy);
  EXPECT_THAT(status.error().text(),
              AllOf(HasSubstr("the share blue exists, but the share daemon does not answer"),
                    HasSubstr("start the container again"), Not(HasSubstr("no longer exists"))));
}

TEST_F(RegisterTest, TheAnswerOfTheDaemonIsUsed) {
  tree_.file("run/gantry/shares/blue/share.json", "{}");
  const auto daemon = answer_after(0ms, "{\"ok\":false,\"error\":\"there is no share blue\"}\n");
  const auto status = register_share(10s);
  EXPECT_EQ(status.error().code(), Errc::NotFound);
  EXPECT_THAT(status.error().text(), HasSubstr("there is no share blue"));
}

}  // namespace
}  // namespace gantry::runtime
