// SPDX-License-Identifier: Apache-2.0
// The daemon must not close a descriptor if closing it blocks.
#include "sharing/daemon/background_closer.hpp"

#include "sharing/daemon/peer_for_test.hpp"
#include "sharing/daemon/share_socket.hpp"
#include "support/tree.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <chrono>

namespace gantry::daemon {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kLingerSeconds = 20;

// A connection to ourselves with more data than the other end reads: its last close blocks.
class LingeringSocket {
 public:
  LingeringSocket() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* place = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_.get(), place, size) != 0 || ::listen(listener_.get(), 1) != 0 ||
        ::getsockname(listener_.get(), place, &size) != 0 ||
        ::connect(socket_.get(), place, size) != 0)
      return;
    const std::array<char, 65'536> much{};
    while (::send(socket_.get(), much.data(), much.size(), MSG_DONTWAIT) > 0) {
    }
    const linger wait{1, kLingerSeconds};
    ready_ = ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait) == 0;
  }
  bool ready() const { return ready_; }
  sys::UniqueFd take() { return std::move(socket_); }

 private:
  sys::UniqueFd listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sys::UniqueFd socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  bool ready_ = false;
};

class BlockingClose : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!lingering_.ready()) GTEST_SKIP() << "no loopback network here";
  }
  // Runs the loop; each iteration must be short.
  void expect_quick(const std::function<bool()>& so) {
    const auto end = Clock::now() + std::chrono::seconds(kLingerSeconds / 2);
    while (!so() && Clock::now() < end) (void)loop_->turn(2ms).ok();
    EXPECT_TRUE(so());
    EXPECT_LT(Clock::now(), end) << "the daemon waited for a descriptor of a peer";
  }

  LingeringSocket lingering_;
  test::Tree tree_;
  std::unique_ptr<sys::Loop> loop_ = *sys::Loop::make();
  SharedPages pages_ = *SharedPages::make("share", std::vector<GpuPageValues>(1));
  AttachedProcesses attached_processes_{*loop_, pages_, {}};
  std::unique_ptr<ShareSocket> socket_ =
      *ShareSocket::open(*loop_, tree_.path("socket"), pages_, attached_processes_, {});
};

TEST_F(BlockingClose, AMessageWithADescriptorThatLingersBlocksNothing) {
  const TestPeer enemy(tree_.path("socket"));
  ASSERT_TRUE(enemy.hello_with(lingering_.take().get()));
  const TestPeer other(tree_.path("socket"));
  ASSERT_TRUE(other.hello());
  expect_quick(
      [&] { return attached_processes_.by_slot().size() == 1 && socket_->connections() == 1; });
}

TEST_F(BlockingClose, NorDoesAnUnreadOne) {
  {
    const TestPeer enemy(tree_.path("socket"));
    ASSERT_TRUE(enemy.send("x", 1));  // cut for this one, with the next unread
    ASSERT_TRUE(enemy.hello_with(lingering_.take().get()));
  }
  const TestPeer other(tree_.path("socket"));
  ASSERT_TRUE(other.hello());
  expect_quick(
      [&] { return attached_processes_.by_slot().size() == 1 && socket_->connections() == 1; });
}

TEST_F(BlockingClose, NorDoesTheEndOfTheShareWithOneThatWaitsToBeAccepted) {
  const TestPeer enemy(tree_.path("socket"));
  ASSERT_TRUE(enemy.hello_with(lingering_.take().get()));
  expect_quick([&] {
    socket_.reset();
    return true;
  });
}

}  // namespace
}  // namespace gantry::daemon
