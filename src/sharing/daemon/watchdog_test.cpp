// SPDX-License-Identifier: Apache-2.0
// A share daemon that hangs or was killed: clients are told which of both, and the watchdog
// replaces it.
#include "sharing/daemon/watchdog.hpp"

#include "sharing/daemon/client.hpp"
#include "sharing/daemon/heartbeat.hpp"
#include "sharing/daemon/share_cgroup.hpp"
#include "sharing/daemon/start_detached.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

namespace gantry::daemon {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;

bool until(const std::function<bool()>& so, std::chrono::milliseconds within = 20s) {
  const auto end = Clock::now() + within;
  while (!so()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

std::vector<std::string> daemon_program() {
  return {test::built("test-programs/share_daemon_program")};
}

class WatchedDaemon : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
    const auto begin = Clock::now();
    auto client = Client::connect_or_start(host_, daemon_program());
    start_took_ = Clock::now() - begin;
    ASSERT_TRUE(client.ok()) << client.error().text();
    ASSERT_TRUE(client->create(*policy::parse_share({.name = "a", .memory = "1GiB"})).ok());
  }
  void TearDown() override {
    ::kill(pid(), SIGCONT);
    auto client = Client::connect_or_start(host_, daemon_program());
    if (client.ok()) (void)client->remove("a");
    client = Error(Errc::NotFound, "");
    EXPECT_TRUE(until([&] { return !host_.exists(kControlSocket); }));
  }
  pid_t pid() const {
    const auto heartbeat = read_heartbeat(host_);
    return heartbeat ? heartbeat->process.pid : -1;
  }
  // A new daemon, which has the share.
  bool replaces(pid_t before, std::chrono::milliseconds within) const {
    return until(
        [&] {
          if (pid() == before) return false;
          auto client = Client::connect_to_ready(host_, 500ms);
          return client.ok() && client->show("a").ok();
        },
        within);
  }
  test::Machine machine_{"h200"};
  sys::Host host_ = machine_.host();
  Clock::duration start_took_{};  // of a daemon, on this machine with its load
};

TEST_F(WatchedDaemon, AStoppedDaemonIsNamedWithTheCommandThatHelps) {
  const auto stopped = pid();
  ASSERT_EQ(::kill(stopped, SIGSTOP), 0);
  const auto begin = Clock::now();
  for (const auto& client : {Client::connect_to_ready(host_, 300ms),
                             Client::connect_or_start(host_, daemon_program())}) {
    ASSERT_FALSE(client.ok());
    EXPECT_EQ(client.error().code(), Errc::Timeout);
    EXPECT_THAT(client.error().text(), HasSubstr(fmt::format("(pid {}) is stopped", stopped)));
    EXPECT_THAT(client.error().text(), HasSubstr(fmt::format("kill -9 {}", stopped)));
  }
  EXPECT_LT(Clock::now() - begin, kAnswerWithin + 5s);
}

TEST_F(WatchedDaemon, ConnectingNeverWaitsForAStoppedDaemon) {
  ASSERT_EQ(::kill(pid(), SIGSTOP), 0);
  std::vector<Client> waiting;
  std::optional<Error> full;
  for (int i = 0; i < 1'000 && !full; ++i) {
    auto client = Client::connect(host_);
    if (client.ok()) {
      waiting.push_back(*std::move(client));
    } else {
      full = client.error();
    }
  }
  ASSERT_TRUE(full) << "the backlog is bounded";
  EXPECT_EQ(full->code(), Errc::Timeout);
  EXPECT_THAT(full->text(), HasSubstr("is stopped"));
}

TEST_F(WatchedDaemon, IsReplacedWhenItIsKilledAndWhenItHangs) {
  std::ostringstream lines;
  const Log log(LogForm::Json, 0, [&](std::string_view line) { lines << line; });
  Status ended;
  std::thread watchdog([&] {
    ended =
        watch_over_daemon({.host = host_, .program = daemon_program(), .hung_after = 1'000ms}, log);
  });
  EXPECT_TRUE(until([&] { return watchdog_runs(host_); }));
  auto before = pid();
  const auto begin = Clock::now();
  ASSERT_EQ(::kill(before, SIGKILL), 0);
  EXPECT_TRUE(replaces(before, 20s));
  EXPECT_LT(Clock::now() - begin, 1s + 3 * start_took_);
  before = pid();
  ASSERT_EQ(::kill(before, SIGSTOP), 0);
  EXPECT_TRUE(replaces(before, 20s));
  ASSERT_TRUE(Client::connect_to_ready(host_)->remove("a").ok());
  watchdog.join();
  EXPECT_TRUE(ended.ok()) << "it ends with the daemon";
  EXPECT_THAT(lines.str(), HasSubstr("the share daemon was killed"));
  EXPECT_THAT(lines.str(), HasSubstr("the share daemon hangs"));
}

TEST_F(WatchedDaemon, OneThatEndsOnPurposeStaysAway) {
  const Log log(LogForm::Json, 0, [](std::string_view) {});
  std::thread watchdog([&] {
    EXPECT_TRUE(watch_over_daemon({.host = host_, .program = daemon_program()}, log).ok());
  });
  EXPECT_TRUE(until([&] { return watchdog_runs(host_); }));
  ASSERT_EQ(::kill(pid(), SIGTERM), 0);
  watchdog.join();
  EXPECT_FALSE(Client::connect(host_).ok());
}

TEST_F(WatchedDaemon, TheMachinesOwnProcessesAreNotAdopted) {
  auto client = Client::connect_to_ready(host_);
  ASSERT_TRUE(client.ok());
  for (const pid_t one : {1, client->daemon_pid()}) {
    const auto adopted = client->adopt("a", one);
    ASSERT_FALSE(adopted.ok()) << one;
    EXPECT_EQ(adopted.error().code(), Errc::Denied);
    EXPECT_THAT(adopted.error().text(), HasSubstr("belongs to the machine"));
  }
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What a detached program sees of its caller, in its log.
std::string detached(const test::Machine& machine, const char* command,
                     const std::function<void()>& in_caller) {
  const auto log = machine.path("/detached.log");
  const pid_t caller = ::fork();
  if (caller == 0) {
    in_caller();
    ::_exit(start_detached({"sh", "-c", command}, log).ok() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(caller, &status, 0), caller);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(until([&] { return content(log).find("end") != std::string::npos; })) << content(log);
  return content(log);
}

TEST(StartDetached, LeavesTheLimitsOfItsCaller) {
  const test::Machine machine("h200");
  const auto seen = detached(machine, "{ ulimit -n; ulimit -f; umask; echo end; } >&2", [] {
    for (const auto& [resource, soft] : {std::pair{RLIMIT_NOFILE, 16}, {RLIMIT_FSIZE, 0}}) {
      rlimit limit{};
      ::getrlimit(resource, &limit);
      limit.rlim_cur = static_cast<rlim_t>(soft);
      ::setrlimit(resource, &limit);
    }
    ::umask(077);
  });
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  std::istringstream lines(seen);
  std::string descriptors;
  std::string file_size;
  std::string mask;
  lines >> descriptors >> file_size >> mask;
  EXPECT_GE(descriptors == "unlimited" ? UINT64_MAX : std::stoull(descriptors),
            std::min<rlim_t>(files.rlim_max, 1'024));
  EXPECT_EQ(file_size, "unlimited");
  EXPECT_EQ(mask, "0022");
}

TEST(StartDetached, LeavesTheCgroupOfItsCaller) {
  const std::string root = ::access("/sys/fs/cgroup/cgroup.procs", W_OK) == 0
                               ? "/sys/fs/cgroup"
                               : "/sys/fs/cgroup/unified";
  const auto group = fmt::format("{}/gantry-share-test-{}", root, ::getpid());
  if (::geteuid() != 0 || ::mkdir(group.c_str(), 0755) != 0)
    GTEST_SKIP() << "cgroup v2 is not writable";
  const test::Machine machine("h200");
  const auto seen = detached(machine, "{ cat /proc/self/cgroup; echo end; } >&2",
                             [&] { std::ofstream(group + "/cgroup.procs") << ::getpid(); });
  EXPECT_THAT(seen, HasSubstr("0::/\n"));
  remove_left_cgroup(group, "another");
  EXPECT_EQ(::access(group.c_str(), F_OK), 0) << "only a share's own cgroup is removed";
  remove_left_cgroup(group, fmt::format("test-{}", ::getpid()));
  EXPECT_NE(::access(group.c_str(), F_OK), 0);
}

// With cgroup v1 each controller has a hierarchy of its own.
TEST(StartDetached, LeavesTheCgroupsOfItsCallerWithV1Too) {
  std::vector<std::string> groups;
  for (const auto* controller : {"memory", "pids", "freezer", "cpu", "systemd"}) {
    auto group = fmt::format("/sys/fs/cgroup/{}/gantry-test-{}", controller, ::getpid());
    if (::geteuid() == 0 && ::mkdir(group.c_str(), 0755) == 0) groups.push_back(std::move(group));
  }
  if (groups.empty()) GTEST_SKIP() << "there is no cgroup v1, or it is not writable";
  const test::Machine machine("h200");
  const auto seen = detached(machine, "{ cat /proc/self/cgroup; echo end; } >&2", [&] {
    for (const auto& group : groups) std::ofstream(group + "/cgroup.procs") << ::getpid();
  });
  EXPECT_THAT(seen, Not(HasSubstr("gantry-test-")));
  for (const auto& group : groups)
    EXPECT_TRUE(until([&] { return ::rmdir(group.c_str()) == 0; })) << group;
}

}  // namespace
}  // namespace gantry::daemon
