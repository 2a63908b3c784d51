// SPDX-License-Identifier: Apache-2.0
// Real sockets and real processes: well-behaved peers and attackers.
#include "sharing/daemon/share_socket.hpp"

#include "base/core/bytes.hpp"
#include "sharing/daemon/peer_for_test.hpp"
#include "support/tree.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <vector>

namespace gantry::daemon {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class ShareSocketTest : public ::testing::Test {
 protected:
  void open(SocketLimits bounds = {}) {
    socket_ = *ShareSocket::open(
        *loop_, path_, pages_, attached_processes_,
        {.report = [this](std::uint32_t slot,
                          const FenceReport& report) { reports_.emplace_back(slot, report); },
         .refused = [this] { ++refused_; }},
        bounds);
  }
  void SetUp() override { open(); }

  // Runs the daemon's side until the condition is true; false after 10 s.
  bool until(const std::function<bool()>& so) {
    const auto end = Clock::now() + 10s;
    while (!so()) {
      if (Clock::now() > end) return false;
      (void)loop_->turn(2ms).ok();
    }
    return true;
  }
  // A peer's call that waits for the daemon, which runs meanwhile.
  template <class F>
  auto meanwhile(F call) {
    decltype(call()) result{};
    std::atomic<bool> done = false;
    std::thread peer([&] {
      result = call();
      done = true;
    });
    until([&] { return done.load(); });
    peer.join();
    return result;
  }
  bool attach(const TestPeer& peer, AttachReply& attached, FenceRole role = FENCE_WORKER) {
    return peer.hello(role) && meanwhile([&] { return peer.receive(attached); });
  }
  // A process that attaches, signals this with one byte, and then calls `then`.
  pid_t process(const std::function<void(const TestPeer&)>& then) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const TestPeer peer(path_);
      AttachReply attached;
      const bool well = peer.hello() && peer.receive(attached);
      (void)!::write(ends[1], well ? "y" : "n", 1);
      then(peer);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char answer = 'n';
    meanwhile([&] { return ::read(ends[0], &answer, 1); });
    ::close(ends[0]);
    EXPECT_EQ(answer, 'y');
    return child;
  }
  static void kill(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  test::Tree tree_;
  std::string path_ = tree_.path("socket");
  std::unique_ptr<sys::Loop> loop_ = *sys::Loop::make();
  SharedPages pages_ = *SharedPages::make(
      "share", std::vector<GpuPageValues>{{.memory_limit = 10 * kGiB, .memory_total = 140 * kGiB}});
  std::vector<pid_t> left_;
  AttachedProcesses attached_processes_{
      *loop_, pages_, {.joined = {}, .left = [this](const AttachedProcess& m) {
                         left_.push_back(m.pid);
                       }}};
  std::vector<std::pair<std::uint32_t, FenceReport>> reports_;
  int refused_ = 0;
  std::unique_ptr<ShareSocket> socket_;
};

TEST_F(ShareSocketTest, AProcessGetsASlotAndBothPages) {
  const TestPeer peer(path_);
  AttachReply attached;
  ASSERT_TRUE(attach(peer, attached));
  EXPECT_EQ(attached.welcome.refusal, static_cast<std::uint32_t>(FENCE_ACCEPTED));
  EXPECT_EQ(attached.welcome.limits_size, sizeof(FenceLimits));
  void* limits = ::mmap(nullptr, attached.welcome.limits_size, PROT_READ, MAP_SHARED,
                        attached.limits.get(), 0);
  ASSERT_NE(limits, MAP_FAILED);
  const auto& process = static_cast<const FenceLimits*>(limits)->process[attached.welcome.slot];
  EXPECT_EQ(process.host_pid, static_cast<std::uint32_t>(::getpid()));
  ::munmap(limits, attached.welcome.limits_size);
}

TEST_F(ShareSocketTest, OneProcessHasOneSlotHoweverOftenItAttaches) {
  const TestPeer first(path_);
  const TestPeer second(path_);
  const TestPeer watching(path_);
  AttachReply one;
  AttachReply two;
  AttachReply three;
  ASSERT_TRUE(attach(first, one));
  ASSERT_TRUE(attach(second, two));
  ASSERT_TRUE(attach(watching, three, FENCE_OBSERVER));
  EXPECT_EQ(one.welcome.slot, two.welcome.slot);
  EXPECT_EQ(attached_processes_.by_slot().size(), 1U);
  EXPECT_TRUE(three.limits.valid());
}

TEST_F(ShareSocketTest, ReportsComeWithTheSlotOfTheirProcess) {
  const TestPeer peer(path_);
  AttachReply attached;
  ASSERT_TRUE(attach(peer, attached));
  ASSERT_TRUE(peer.report(FENCE_DRAINED, 0, 17));
  ASSERT_TRUE(until([&] { return !reports_.empty(); }));
  EXPECT_EQ(reports_[0].first, attached.welcome.slot);
  EXPECT_EQ(reports_[0].second.turn, 17U);
}

TEST_F(ShareSocketTest, TheRefusalThatAProcessEndedForIsCounted) {
  const auto child = process([](const TestPeer& peer) {
    std::this_thread::sleep_for(20ms);  // until the daemon's side runs no more
    (void)peer.report(FENCE_ACTIVE, 0, 0);
    ::_exit(peer.report(FENCE_REFUSED, 0, 0) ? 0 : 1);
  });
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(until([&] { return socket_->connections() == 0; }));
  EXPECT_EQ(refused_, 1);
}

TEST_F(ShareSocketTest, AClosedSocketIsNoDeath) {
  AttachReply attached;
  {
    const TestPeer peer(path_);
    ASSERT_TRUE(attach(peer, attached));
  }
  ASSERT_TRUE(until([&] { return socket_->connections() == 0; }));
  EXPECT_EQ(attached_processes_.by_slot().size(), 1U);
  const TestPeer again(path_);
  AttachReply second;
  ASSERT_TRUE(attach(again, second));
  EXPECT_EQ(second.welcome.slot, attached.welcome.slot);
}

TEST_F(ShareSocketTest, AKilledProcessGivesBackItsSlot) {
  const auto child = process([](const TestPeer&) {});
  ASSERT_EQ(attached_processes_.by_slot().size(), 1U);
  kill(child);
  ASSERT_TRUE(until([&] { return attached_processes_.by_slot().empty(); }));
  EXPECT_EQ(left_, std::vector<pid_t>{child});
  EXPECT_EQ(pages_.slots_in_use(), 0U);
}

TEST_F(ShareSocketTest, AChildThatKeepsTheSocketDoesNotKeepItsParentAlive) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto parent = process([&](const TestPeer&) {
    const pid_t grandchild = ::fork();
    if (grandchild != 0) {
      (void)!::write(ends[1], &grandchild, sizeof grandchild);
      ::_exit(0);
    }
  });
  pid_t grandchild = 0;
  ASSERT_EQ(::read(ends[0], &grandchild, sizeof grandchild),
            static_cast<ssize_t>(sizeof grandchild));
  EXPECT_TRUE(until([&] { return attached_processes_.by_slot().empty(); }));
  ::waitpid(parent, nullptr, 0);
  ::kill(grandchild, SIGKILL);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(ShareSocketTest, WhoSpeaksAnotherLanguageIsCut) {
  const FenceReport early{FENCE_ACTIVE, 0, 0, 0, 0};
  const FenceHello no_role{FENCE_MAGIC, FENCE_VERSION, 9, 0};
  const std::vector<char> huge(60'000, 'x');
  for (const auto& [bytes, size] : std::vector<std::pair<const void*, std::size_t>>{
           {"x", 1}, {&early, sizeof early}, {&no_role, sizeof no_role}, {huge.data(), 60'000}}) {
    const TestPeer peer(path_);
    ASSERT_TRUE(peer.send(bytes, size));
    EXPECT_TRUE(meanwhile([&] { return peer.is_cut(); })) << size;
  }
  EXPECT_TRUE(attached_processes_.by_slot().empty());
}

TEST_F(ShareSocketTest, ReportsThatNameNoGpuOrEventAreTheLastOfThatPeer) {
  for (const auto& [event, gpu] :
       std::vector<std::pair<std::uint32_t, std::uint32_t>>{{FENCE_ACTIVE, 1}, {77, 0}, {0, 0}}) {
    const TestPeer peer(path_);
    AttachReply attached;
    ASSERT_TRUE(attach(peer, attached));
    const FenceReport report{event, gpu, 0, 0, 0};
    ASSERT_TRUE(peer.send(&report, sizeof report));
    EXPECT_TRUE(meanwhile([&] { return peer.is_cut(); }));
  }
  EXPECT_TRUE(reports_.empty());
}

TEST_F(ShareSocketTest, AnObserverHasNothingToReport) {
  const TestPeer peer(path_);
  AttachReply attached;
  ASSERT_TRUE(attach(peer, attached, FENCE_OBSERVER));
  ASSERT_TRUE(peer.report(FENCE_ACTIVE));
  EXPECT_TRUE(meanwhile([&] { return peer.is_cut(); }));
}

TEST_F(ShareSocketTest, AnotherVersionGetsAnError) {
  const TestPeer peer(path_);
  const FenceHello newer{FENCE_MAGIC, FENCE_VERSION + 1, FENCE_WORKER, 0};
  ASSERT_TRUE(peer.send(&newer, sizeof newer));
  AttachReply attached;
  ASSERT_TRUE(meanwhile([&] { return peer.receive(attached); }));
  EXPECT_EQ(attached.welcome.refusal, static_cast<std::uint32_t>(FENCE_BAD_VERSION));
  EXPECT_FALSE(attached.limits.valid());
}

TEST_F(ShareSocketTest, WhoNeverSaysHelloIsForgotten) {
  open({.hello_timeout = 50ms});
  const TestPeer peer(path_);
  ASSERT_TRUE(until([&] { return socket_->connections() == 1; }));
  ASSERT_TRUE(until([&] {
    socket_->on_heartbeat();
    return socket_->connections() == 0;
  }));
  EXPECT_TRUE(peer.is_cut());
}

TEST_F(ShareSocketTest, AFloodOfConnectionsIsBounded) {
  open({.connections = 100, .connections_per_process = 8});
  std::vector<std::unique_ptr<TestPeer>> peers;
  for (int i = 0; i < 300; ++i) {
    peers.push_back(std::make_unique<TestPeer>(path_));
    (void)loop_->turn(0ms).ok();
    EXPECT_LE(socket_->connections(), 8U) << "all are this one process";
  }
  AttachReply attached;
  ASSERT_TRUE(meanwhile([&] { return peers.back()->receive(attached); }));
  EXPECT_EQ(attached.welcome.refusal, static_cast<std::uint32_t>(FENCE_NO_SLOT));
}

TEST_F(ShareSocketTest, AFloodOfReportsIsHeldBackAndOthersAreHeard) {
  open({.reports_at_once = 4, .reports_per_heartbeat = 100});
  const auto enemy = process([](const TestPeer& peer) {
    while (peer.report(FENCE_ACTIVE)) {
    }
  });
  ASSERT_TRUE(until([&] { return reports_.size() >= 50; }));
  const TestPeer peer(path_);
  AttachReply attached;
  ASSERT_TRUE(attach(peer, attached));
  ASSERT_TRUE(peer.report(FENCE_IDLE));
  const auto heard = [&] {
    return std::any_of(reports_.begin(), reports_.end(),
                       [](const auto& one) { return one.second.event == FENCE_IDLE; });
  };
  EXPECT_TRUE(until(heard));
  EXPECT_LE(reports_.size(), 101U) << "no more of the enemy before the next beat";
  const auto before = reports_.size();
  ASSERT_TRUE(until([&] {
    socket_->on_heartbeat();
    return reports_.size() > before;
  })) << "after it, it is heard again";
  kill(enemy);
}

TEST_F(ShareSocketTest, AFloodFromManyPeersIsBoundedForAllOfThem) {
  open({.reports_at_once = 4, .reports_per_heartbeat_total = 100});
  std::vector<std::unique_ptr<TestPeer>> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(std::make_unique<TestPeer>(path_));
    AttachReply attached;
    ASSERT_TRUE(attach(*peers.back(), attached));
  }
  for (int i = 0; i < 50; ++i) {
    for (const auto& peer : peers) ASSERT_TRUE(peer->report(FENCE_ACTIVE));
  }
  for (int i = 0; i < 200; ++i) (void)loop_->turn(0ms).ok();
  EXPECT_LE(reports_.size(), 104U);
  EXPECT_TRUE(until([&] {
    socket_->on_heartbeat();
    return reports_.size() == 200;
  })) << "later, all are heard";
}

TEST_F(ShareSocketTest, AFloodOfNewConnectionsWaitsForTheNextBeat) {
  open({.accepts_per_heartbeat = 4});
  std::vector<std::unique_ptr<TestPeer>> peers;
  for (int i = 0; i < 8; ++i) peers.push_back(std::make_unique<TestPeer>(path_));
  for (int i = 0; i < 50; ++i) (void)loop_->turn(0ms).ok();
  EXPECT_EQ(socket_->connections(), 4U);
  EXPECT_TRUE(until([&] {
    socket_->on_heartbeat();
    return socket_->connections() == 8;
  }));
}

TEST_F(ShareSocketTest, ACrowdOfNewProcessesIsWelcomeOneAfterTheOther) {
  open({.connections_per_process = 16, .hellos_per_heartbeat = 4});
  std::vector<std::unique_ptr<TestPeer>> peers;
  for (int i = 0; i < 9; ++i) {
    peers.push_back(std::make_unique<TestPeer>(path_));
    ASSERT_TRUE(peers.back()->hello());
  }
  const auto welcome = [&] {
    std::size_t count = 0;
    for (const auto& peer : peers) {
      pollfd wait{peer->fd(), POLLIN, 0};
      count += ::poll(&wait, 1, 0) == 1 ? 1U : 0U;
    }
    return count;
  };
  for (int i = 0; i < 100; ++i) (void)loop_->turn(0ms).ok();
  EXPECT_EQ(welcome(), 4U);
  EXPECT_TRUE(until([&] {
    socket_->on_heartbeat();
    return welcome() == 9;
  })) << "in the end all are";
}

TEST_F(ShareSocketTest, TheLastDescriptorsAreForOthers) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  open({.reserved_descriptors = static_cast<int>(files.rlim_cur)});
  const TestPeer peer(path_);
  AttachReply attached;
  ASSERT_TRUE(meanwhile([&] { return peer.receive(attached); }));
  EXPECT_EQ(attached.welcome.refusal, static_cast<std::uint32_t>(FENCE_NO_SLOT));
}

TEST(PeerIdentity, ANumberThatIsAnotherProcesssByNowIsRefused) {
  EXPECT_TRUE(pidfd_if_started_before(::getpid(), boottime_ns()).ok());
  const auto later = pidfd_if_started_before(::getpid(), 0);
  ASSERT_FALSE(later.ok());
  EXPECT_EQ(later.error().code(), Errc::NotFound);
}

TEST_F(ShareSocketTest, RandomMessagesAreHarmless) {
  std::mt19937 random(11);
  std::vector<char> bytes(256);
  for (int round = 0; round < 500; ++round) {
    if (round % 32 == 0) socket_->on_heartbeat();
    const TestPeer peer(path_);
    ASSERT_TRUE(peer.valid());
    if (round % 2 == 0) {
      AttachReply attached;
      ASSERT_TRUE(attach(peer, attached));
    }
    for (auto& byte : bytes) byte = static_cast<char>(random());
    const auto size = round % 3 == 0 ? sizeof(FenceReport) : random() % bytes.size();
    (void)peer.send(bytes.data(), size);
    (void)loop_->turn(0ms).ok();
  }
  ASSERT_TRUE(until([&] { return socket_->connections() == 0; }));
  EXPECT_EQ(attached_processes_.by_slot().size(), 1U);
}

TEST_F(ShareSocketTest, DescriptorsThatAPeerSendsAreNotKept) {
  const auto open_ones = [] {
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
  };
  const TestPeer peer(path_);
  ASSERT_TRUE(until([&] { return socket_->connections() == 1; }));
  const int before = open_ones();
  ASSERT_TRUE(peer.hello_with(STDERR_FILENO));
  EXPECT_TRUE(meanwhile([&] { return peer.is_cut(); }));
  EXPECT_TRUE(until([&] { return open_ones() <= before; }));
}

}  // namespace
}  // namespace gantry::daemon
