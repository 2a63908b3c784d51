// SPDX-License-Identifier: Apache-2.0
// A complete share daemon in a separate process on a simulated machine, with clients and peers.
#include "base/core/bytes.hpp"
#include "base/core/text.hpp"
#include "gpu/ownership/owner_change.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "sharing/daemon/client.hpp"
#include "sharing/daemon/peer_for_test.hpp"
#include "sharing/daemon/peer_identity.hpp"
#include "sharing/daemon/serve.hpp"
#include "sharing/daemon/share_record.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

namespace gantry::daemon {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

bool eventually(const std::function<bool()>& so) {
  const auto end = Clock::now() + 20s;
  while (!so()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

policy::Share share_of(policy::ShareText text) {
  auto share = policy::parse_share(text);
  EXPECT_TRUE(share.ok()) << share.error().text();
  return *share;
}

class DaemonProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
    start();
  }
  void TearDown() override { stop(SIGTERM); }

  void start(Lifetime life = Lifetime::UntilSignal) {
    daemon_ = ::fork();
    ASSERT_GE(daemon_, 0);
    if (daemon_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      nvml_child::NvmlChildOptions sensor;
      const auto ended = serve(
          {.host = machine_.host(), .life = life, .sensor = sensor, .log = [](std::string_view) {
           }});
      ::_exit(ended.ok() ? 0 : ended.error().code() == Errc::Busy ? 3 : 1);
    }
    ASSERT_TRUE(eventually([&] { return Client::connect(host_).ok(); }));
  }
  int stop(int signal) {
    if (daemon_ <= 0) return -1;
    if (signal != 0) ::kill(daemon_, signal);
    int status = -1;
    ::waitpid(daemon_, &status, 0);
    daemon_ = -1;
    return status;
  }
  Client client() { return *Client::connect(host_); }
  static std::string socket_of(const ShareState& state) { return state.directory + "/socket"; }

  test::Machine machine_{"h200x8"};
  sys::Host host_ = machine_.host();
  pid_t daemon_ = -1;
};

TEST_F(DaemonProcess, MakesASharePeopleCanAttachTo) {
  auto asking = client();
  const auto made = asking.create(share_of({.name = "train", .memory = "10GiB", .compute = "30%"}));
  ASSERT_TRUE(made.ok()) << made.error().text();
  ASSERT_THAT(made->gpus, SizeIs(1));
  EXPECT_EQ(made->gpus[0].memory_limit, 10 * kGiB);
  EXPECT_GT(made->gpus[0].memory_total, 100 * kGiB);
  const AttachedPeer peer(socket_of(*made));
  ASSERT_TRUE(peer.valid());
  const auto listed = asking.list();
  ASSERT_TRUE(listed.ok());
  ASSERT_THAT(*listed, SizeIs(1));
  ASSERT_THAT(listed->front().processes, SizeIs(1));
  EXPECT_EQ(listed->front().processes[0].pid, static_cast<std::uint32_t>(::getpid()));
}

TEST_F(DaemonProcess, SpreadsSharesThatNameNoGpu) {
  auto asking = client();
  const auto first = asking.create(share_of({.name = "a", .memory = "100GiB"}));
  const auto second = asking.create(share_of({.name = "b", .memory = "100GiB"}));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->gpus[0].uuid, second->gpus[0].uuid);
}

// Whether the daemon has a process of its own: the one that uses NVML.
bool has_child(pid_t daemon) {
  const auto host = sys::Host::at("/");
  const auto names = host->list("/proc");
  for (const auto& name : *names) {
    const auto stat = host->read(fmt::format("/proc/{}/stat", name)).value_or("");
    const auto end = stat.rfind(") ");
    if (end == std::string::npos) continue;
    const auto fields = split(std::string_view(stat).substr(end + 2), ' ');
    if (fields.size() > 1 && fields[0] != "Z" && fields[1] == fmt::to_string(daemon)) return true;
  }
  return false;
}

TEST_F(DaemonProcess, ClosesTheDriverWhileAClientNeedsAGpuForItself) {
  auto asking = client();
  ASSERT_TRUE(asking.create(share_of({.name = "a", .memory = "10GiB"})).ok());
  ASSERT_TRUE(has_child(daemon_));
  {
    auto command = client();
    const auto released = command.release_driver();
    ASSERT_TRUE(released.ok()) << released.error().text();
    EXPECT_TRUE(eventually([&] { return !has_child(daemon_); }));
    EXPECT_THAT(*asking.list(), SizeIs(1)) << "the share stays";
  }
  EXPECT_TRUE(eventually([&] { return has_child(daemon_); }));
  EXPECT_TRUE(asking.create(share_of({.name = "b", .memory = "10GiB"})).ok());
}

TEST_F(DaemonProcess, OpensNoGpuIfItStartsWhileACommandChangesAnOwner) {
  stop(SIGTERM);
  const ownership::OwnerChange change{.gpu = {.bus = 0x77},
                                      .to = ownership::Owner::Vm,
                                      .use = model::AllocationMode::Vm,
                                      .what = "gantry vfio bind 0000:77:00.0"};
  const auto act = [&]() -> Status {
    start();
    for (int i = 0; i < 5; ++i) {
      EXPECT_FALSE(has_child(daemon_));
      std::this_thread::sleep_for(100ms);
    }
    return {};
  };
  ASSERT_TRUE(ownership::change_owner(host_, change, {.withdrawn = true}, act).ok());
  EXPECT_TRUE(eventually([&] { return has_child(daemon_); }));
  EXPECT_TRUE(client().create(share_of({.name = "a", .memory = "10GiB"})).ok());
}

TEST_F(DaemonProcess, RefusesAGpuThatBelongsToVirtualMachinesOrIsOnItsWay) {
  auto asking = client();
  const auto first = asking.create(share_of({.name = "a", .memory = "10GiB"}));
  ASSERT_TRUE(first.ok());
  const auto uuid = first->gpus[0].uuid;
  ASSERT_TRUE(asking.remove("a").ok());
  const model::PciAddress place{.bus = 0x77};
  auto ledger = ownership::OwnershipStore::open(host_);
  ASSERT_TRUE(ledger.ok());
  ASSERT_TRUE(
      ledger->adopt(place, uuid, ownership::Owner::Plugin, model::AllocationMode::Whole).ok());
  const ownership::OwnerIntent intent{.gpu = place,
                                      .to = ownership::Owner::Vm,
                                      .use = model::AllocationMode::Vm,
                                      .what = "gantry vfio bind 0000:77:00.0"};
  ASSERT_TRUE(ledger->begin(intent, {.withdrawn = true}).ok());
  const auto share = share_of({.name = "b", .gpus = uuid.text, .memory = "10GiB"});
  EXPECT_EQ(asking.create(share).error().code(), Errc::Busy);
  ASSERT_TRUE(ledger->finish(intent).ok());
  const auto refused = asking.create(share);
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(refused.error().text(), HasSubstr("it belongs to vm"));
  const auto elsewhere = asking.create(share_of({.name = "c", .memory = "10GiB"}));
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.error().text();
  EXPECT_NE(elsewhere->gpus[0].uuid, uuid);
}

TEST_F(DaemonProcess, RefusesAGpuOfVirtualMachinesWhoseAddressIsNotKnown) {
  auto asking = client();
  const auto first = asking.create(share_of({.name = "a", .memory = "10GiB"}));
  ASSERT_TRUE(first.ok());
  const auto uuid = first->gpus[0].uuid;
  ASSERT_TRUE(asking.remove("a").ok());
  auto ledger = ownership::OwnershipStore::open(host_);
  ASSERT_TRUE(ledger.ok());
  const model::PciAddress place{.bus = 0x77};
  ASSERT_TRUE(ledger->adopt(place, uuid, ownership::Owner::Vm, model::AllocationMode::Vm).ok());
  ASSERT_TRUE(
      ledger->adopt(place, {"GPU-other"}, ownership::Owner::Plugin, model::AllocationMode::Whole)
          .ok());
  ASSERT_NE(ledger->state().find_unplaced(uuid), nullptr) << "another card took its slot";
  const auto refused = asking.create(share_of({.name = "b", .gpus = uuid.text, .memory = "10GiB"}));
  EXPECT_EQ(refused.error().code(), Errc::Denied);
}

TEST_F(DaemonProcess, RefusesWhatDoesNotFitOrIsThereAlready) {
  auto asking = client();
  const auto first = asking.create(share_of({.name = "a", .memory = "100GiB"}));
  ASSERT_TRUE(first.ok());
  const auto same = asking.create(share_of({.name = "a", .memory = "1GiB"}));
  ASSERT_FALSE(same.ok());
  EXPECT_EQ(same.error().code(), Errc::Exists);
  auto beside = share_of({.name = "b", .memory = "100GiB"});
  beside.gpus = first->share.gpus;
  const auto over = asking.create(beside);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().code(), Errc::Invalid);
  EXPECT_TRUE(asking.create(beside, policy::Overcommit::Allowed).ok());
  const auto nowhere =
      asking.create(share_of({.name = "c", .gpus = "GPU-00000000-0000-0000-0000-000000000000"}));
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().code(), Errc::NotFound);
}

TEST_F(DaemonProcess, WhatItCouldNotMakeIsNotThereAfterARestart) {
  const auto in_the_way = host_.outside(fence_directory("a")) + "/socket";
  std::filesystem::create_directories(in_the_way);
  EXPECT_FALSE(client().create(share_of({.name = "a", .memory = "1GiB"})).ok());
  std::filesystem::remove(in_the_way);
  stop(SIGKILL);
  start();
  EXPECT_THAT(*client().list(), IsEmpty());
  EXPECT_TRUE(client().create(share_of({.name = "a", .memory = "1GiB"})).ok());
}

TEST_F(DaemonProcess, AHeldShareEndsWithItsClient) {
  auto watching = client();
  std::string name;
  {
    auto holding = client();
    const auto held = holding.hold(share_of({.name = "short", .memory = "1GiB"}));
    ASSERT_TRUE(held.ok()) << held.error().text();
    EXPECT_TRUE(held->held);
    name = held->share.name;
    EXPECT_TRUE(watching.show(name).ok());
  }
  EXPECT_TRUE(eventually([&] { return !watching.show(name).ok(); }));
  EXPECT_FALSE(host_.exists("/run/gantry/shares/" + name));
}

TEST_F(DaemonProcess, NewLimitsReachRunningProcessesAtOnce) {
  auto asking = client();
  const auto made = asking.create(share_of({.name = "a", .memory = "1GiB"}));
  ASSERT_TRUE(made.ok());
  const AttachedPeer peer(socket_of(*made));
  ASSERT_TRUE(peer.valid());
  const auto& limits = peer.limits();
  EXPECT_EQ(limits.flags & FENCE_TIME_LIMITED, 0U);
  const auto moved = asking.set("a", {.backend = policy::Backend::Mps});
  EXPECT_THAT(moved.error().text(), HasSubstr("backend of a share cannot be changed"));
  EXPECT_EQ(moved.error().remedy(), "remove it and create it again");
  const auto set =
      asking.set("a", {.memory = policy::MemoryLimit{.bytes = 2 * kGiB}, .percent = 50});
  ASSERT_TRUE(set.ok()) << set.error().text();
  EXPECT_EQ(limits.gpu[0].memory_limit, 2 * kGiB);
  EXPECT_EQ(limits.gpu[0].share_percent, 50U);
  EXPECT_EQ(limits.flags & FENCE_TIME_LIMITED, static_cast<unsigned>(FENCE_TIME_LIMITED));
}

TEST_F(DaemonProcess, SharesOutliveADaemonThatIsKilled) {
  std::optional<Client> holding(client());
  const auto held = holding->hold(share_of({.name = "held", .memory = "2GiB"}));
  const auto named = holding->create(share_of({.name = "named", .memory = "1GiB"}));
  ASSERT_TRUE(held.ok() && named.ok());
  stop(SIGKILL);
  start();
  auto asking = client();
  for (const auto& state : {*held, *named}) {
    const AttachedPeer peer(socket_of(state));
    ASSERT_TRUE(peer.valid()) << state.share.name;
    EXPECT_NE(peer.limits().gpu[0].reading_ns, 0U)
        << "nobody joins before it is known what the others hold";
    const auto again = asking.show(state.share.name);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->share, state.share);
    EXPECT_EQ(again->held, state.held);
  }
}

// A process that holds the share "held" and belongs to it, until it is killed.
class Holder {
 public:
  explicit Holder(const sys::Host& host) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      auto holding = *Client::connect(host);
      const bool well = holding.hold(share_of({.name = "held", .memory = "2GiB"})).ok() &&
                        holding.adopt("held", ::getpid()).ok();
      (void)!::write(ends[1], well ? "y" : "n", 1);
      for (;;) ::pause();
    }
    char well = 'n';
    EXPECT_EQ(::read(ends[0], &well, 1), 1);
    EXPECT_EQ(well, 'y');
    ::close(ends[0]);
    ::close(ends[1]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
};

TEST_F(DaemonProcess, AHeldShareDoesNotOutliveItsHolderOverARestart) {
  Holder holder(host_);
  stop(SIGKILL);
  start();
  auto asking = client();
  EXPECT_TRUE(asking.show("held").ok());
  holder.kill();
  EXPECT_TRUE(eventually([&] { return !asking.show("held").ok(); }));
}

TEST_F(DaemonProcess, TheCgroupOfAHolderThatEndedBetweenTwoDaemonsIsRemoved) {
  Holder holder(host_);
  const auto records = read_records(host_).records;
  ASSERT_THAT(records, SizeIs(1));
  const auto cgroup = records[0].cgroup;
  if (cgroup.empty()) GTEST_SKIP() << "cgroup v2 is not writable";
  stop(SIGKILL);
  holder.kill();
  ASSERT_TRUE(std::filesystem::exists(cgroup));
  start();
  EXPECT_FALSE(std::filesystem::exists(cgroup)) << cgroup;
  EXPECT_THAT(read_records(host_).records, IsEmpty());
}

std::string oom_score_adj(pid_t pid) {
  return sys::Host::at("/")->read_value(fmt::format("/proc/{}/oom_score_adj", pid)).value_or("");
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& name : *sys::Host::at("/")->list("/proc")) {
    const auto pid = parse_u64(name);
    if (pid && parent_of(static_cast<pid_t>(*pid)) == parent)
      children.push_back(static_cast<pid_t>(*pid));
  }
  return children;
}

bool may_be_spared() {
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    ::_exit(::write(file, "-900", 4) == 4 ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

TEST_F(DaemonProcess, IsSparedWhenMemoryRunsShortButNotItsChild) {
  if (!may_be_spared()) GTEST_SKIP() << "needs CAP_SYS_RESOURCE";
  EXPECT_EQ(oom_score_adj(daemon_), "-900");
  EXPECT_TRUE(eventually([&] {
    const auto children = children_of(daemon_);
    return children.size() == 1 && oom_score_adj(children[0]) == oom_score_adj(::getpid());
  }));
}

TEST_F(DaemonProcess, ASecondDaemonDoesNotStart) {
  const pid_t second = ::fork();
  if (second == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    nvml_child::NvmlChildOptions sensor;
    const auto ended =
        serve({.host = machine_.host(), .sensor = sensor, .log = [](std::string_view) {}});
    ::_exit(!ended.ok() && ended.error().code() == Errc::Busy ? 3 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(second, &status, 0), second);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST_F(DaemonProcess, UntilIdleItEndsWithItsLastShare) {
  stop(SIGTERM);
  start(Lifetime::UntilIdle);
  {
    auto asking = client();
    ASSERT_TRUE(asking.create(share_of({.name = "a", .memory = "1GiB"})).ok());
    ASSERT_TRUE(asking.remove("a").ok());
  }
  EXPECT_EQ(stop(0), 0);
  EXPECT_FALSE(host_.exists(kControlSocket));
}

TEST_F(DaemonProcess, UntilIdleItEndsWithASimulatedMachineThatIsDeleted) {
  stop(SIGTERM);
  start(Lifetime::UntilIdle);
  ASSERT_TRUE(client().create(share_of({.name = "a", .memory = "1GiB"})).ok());
  std::filesystem::remove_all(host_.outside("/run/gantry"));
  EXPECT_EQ(stop(0), 0);
}

TEST_F(DaemonProcess, IsStartedByWhoNeedsItFirstAndEndsWithTheLastShare) {
  stop(SIGTERM);
  {
    auto first =
        Client::connect_or_start(host_, {test::built("test-programs/share_daemon_program")});
    ASSERT_TRUE(first.ok()) << first.error().text();
    auto second =
        Client::connect_or_start(host_, {test::built("test-programs/share_daemon_program")});
    ASSERT_TRUE(second.ok()) << second.error().text();
    ASSERT_TRUE(first->hold(share_of({.name = "a", .memory = "1GiB"})).ok());
    EXPECT_TRUE(second->show("a").ok()) << "it is the same daemon";
  }
  EXPECT_TRUE(eventually([&] { return !host_.exists(kControlSocket); }));
  EXPECT_FALSE(host_.exists("/run/gantry/shares/a"));
}

TEST_F(DaemonProcess, ADaemonThatCannotBeStartedIsAnErrorWithTheReason) {
  stop(SIGTERM);
  const auto none = Client::connect_or_start(host_, {"/nowhere/gantry"});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().text(), HasSubstr("/nowhere/gantry"));
}

// A process of the share writes random bytes into the usage page all the time.
TEST_F(DaemonProcess, ATenantThatScribblesHarmsNoOther) {
  auto asking = client();
  const auto bad = asking.create(share_of({.name = "bad", .memory = "10GiB", .compute = "10%"}));
  auto other = share_of({.name = "good", .memory = "10GiB", .compute = "30%"});
  other.gpus = bad->share.gpus;
  const auto good = asking.create(other);
  ASSERT_TRUE(bad.ok() && good.ok());
  const pid_t scribbler = ::fork();
  if (scribbler == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const AttachedPeer peer(socket_of(*bad));
    if (!peer.valid()) ::_exit(1);
    auto* words = static_cast<std::uint64_t*>(peer.usage());
    std::uint64_t random = 88172645463325252U;
    for (std::size_t i = 0;; i = (i + 1) % (peer.usage_size() / 8)) {
      random ^= random << 13U;
      random ^= random >> 7U;
      random ^= random << 17U;
      __atomic_store_n(&words[i], random, __ATOMIC_RELAXED);
      if (i % 64 == 0) {
        const FenceReport report{static_cast<std::uint32_t>(random % 6), 0,
                                 static_cast<std::uint32_t>(random >> 32U), 0, random};
        ::send(peer.peer().fd(), &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT);
      }
    }
  }
  const AttachedPeer peer(socket_of(*good));
  ASSERT_TRUE(peer.valid());
  peer.row().held = 3 * kGiB;
  ASSERT_TRUE(eventually([&] { return !asking.show("bad")->processes.empty(); }));
  const auto until = Clock::now() + 2s;
  while (Clock::now() < until) {
    const auto mine = asking.show("good");
    ASSERT_TRUE(mine.ok()) << mine.error().text();
    EXPECT_EQ(mine->gpus[0].memory_held, 3 * kGiB);
    const auto theirs = asking.show("bad");
    ASSERT_TRUE(theirs.ok());
    EXPECT_LE(theirs->gpus[0].memory_held, theirs->gpus[0].memory_total);
    EXPECT_LE(theirs->processes.size(), 1U);
  }
  ::kill(scribbler, SIGKILL);
  ::waitpid(scribbler, nullptr, 0);
  EXPECT_TRUE(eventually([&] { return asking.show("bad")->gpus[0].memory_held == 0; }));
}

// The report of one share must not prevent the reports of the others.
TEST_F(DaemonProcess, OfACrowdSomeAreNamedAndAllAreCounted) {
  constexpr std::size_t kCrowd = kMaxShownProcesses + 6;
  auto asking = client();
  const auto made = asking.create(share_of({.name = "crowd", .memory = "10GiB"}));
  ASSERT_TRUE(made.ok());
  std::vector<pid_t> crowd;
  for (std::size_t i = 0; i < kCrowd; ++i) {
    crowd.push_back(::fork());
    if (crowd.back() != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const AttachedPeer peer(socket_of(*made));
    if (!peer.valid()) ::_exit(1);
    __atomic_store_n(&peer.row().held, kGiB / 64, __ATOMIC_SEQ_CST);
    for (;;) ::pause();
  }
  EXPECT_TRUE(eventually([&] {
    const auto state = asking.show("crowd");
    return state->gpus[0].memory_held == kCrowd * (kGiB / 64) && process_count(*state) == kCrowd;
  }));
  EXPECT_THAT(asking.show("crowd")->processes, SizeIs(kMaxShownProcesses));
  for (const pid_t one : crowd) {
    ::kill(one, SIGKILL);
    ::waitpid(one, nullptr, 0);
  }
  EXPECT_TRUE(eventually([&] { return process_count(*asking.show("crowd")) == 0; }));
}

TEST_F(DaemonProcess, TheBeatGoesOn) {
  auto asking = client();
  const auto made = asking.create(share_of({.name = "a", .memory = "1GiB"}));
  ASSERT_TRUE(made.ok());
  const AttachedPeer peer(socket_of(*made));
  ASSERT_TRUE(peer.valid());
  const auto& heartbeat = peer.limits().heartbeat_ns;
  const auto first = __atomic_load_n(&heartbeat, __ATOMIC_ACQUIRE);
  EXPECT_TRUE(eventually([&] { return __atomic_load_n(&heartbeat, __ATOMIC_ACQUIRE) > first; }));
}

}  // namespace
}  // namespace gantry::daemon
