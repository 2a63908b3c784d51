// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/protocol.hpp"

#include "base/core/text.hpp"
#include "base/sys/host.hpp"
#include "sharing/daemon/peer_identity.hpp"
#include "sharing/daemon/share_record.hpp"
#include "sharing/daemon/share_state_for_test.hpp"
#include "support/tree.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <functional>

namespace gantry::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

policy::Share a_share() {
  return *policy::parse_share(
      {.name = "train", .gpus = "GPU-1", .memory = "10GiB", .compute = "30%"});
}

ShareState a_state() {
  return example_state(a_share());
}

TEST(Questions, ComeOutAsTheyWentIn) {
  const Request set{.ask = RequestKind::Set,
                    .name = "train",
                    .changes = {.memory = policy::MemoryLimit{.percent = 20}, .percent = 50},
                    .overcommit = policy::Overcommit::Allowed};
  const auto read = parse_request(to_line(set));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->ask, RequestKind::Set);
  EXPECT_EQ(read->name, "train");
  EXPECT_EQ(read->changes, set.changes);
  EXPECT_EQ(read->overcommit, policy::Overcommit::Allowed);
  const auto hold = parse_request(to_line({.ask = RequestKind::Hold, .share = a_share()}));
  ASSERT_TRUE(hold.ok()) << hold.error().text();
  EXPECT_EQ(hold->share, a_share());
  const auto adopt = parse_request(
      to_line({.ask = RequestKind::Adopt, .name = "train", .pid = 4711, .contained = true}));
  ASSERT_TRUE(adopt.ok()) << adopt.error().text();
  EXPECT_EQ(adopt->pid, 4711);
  EXPECT_TRUE(adopt->contained);
}

TEST(Answers, OfAnOlderDaemonAreUnderstood) {
  auto state = a_state();
  auto text = to_json(state);
  for (const std::string_view later :
       {R"(,"strangers":[{"pid":7,"memoryUsed":8,"command":"other"}])", R"(,"moreProcesses":2)"}) {
    const auto at = text.find(later);
    ASSERT_NE(at, std::string::npos) << text;
    text.erase(at, later.size());
  }
  state.gpus[0].unmanaged.clear();
  state.more_processes = 0;
  const auto document = json::Document::parse(text);
  ASSERT_TRUE(document.ok()) << document.error().text();
  const auto read = state_from_json(document->root());
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, state);
}

TEST(Questions, ThatMakeNoSenseAreErrors) {
  for (const auto* line :
       {"", "x", "[]", "{}", R"({"ask":"dance"})", R"({"ask":"remove"})", R"({"ask":"create"})",
        R"({"ask":"create","share":{"name":"../x"}})", R"({"ask":"adopt","name":"a","pid":-1})",
        R"({"ask":"set","name":"a","changes":{"colour":"red"}})"}) {
    EXPECT_FALSE(parse_request(line).ok()) << line;
  }
}

TEST(Answers, CarryWholeStates) {
  const auto read = parse_response(to_response(std::vector{a_state()}));
  ASSERT_TRUE(read.ok()) << read.error().text();
  ASSERT_THAT(*read, SizeIs(1));
  EXPECT_EQ(read->front(), a_state());
}

TEST(Answers, CarryErrorsWithTheirReason) {
  const auto read = parse_response(to_response(Error(Errc::Exists, "it is \"there\" already")));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::Exists);
  EXPECT_EQ(read.error().text(), "it is \"there\" already");
}

// A hook outside of the container names its first process; nobody may name the machine's own first
// process.
TEST(FirstProcess, OfAHooksContainerIsTheOneItNames) {
  EXPECT_EQ(container_init_pid(::getpid(), 4711), 4711);
  EXPECT_EQ(container_init_pid(::getpid(), 1), 0);
  EXPECT_EQ(container_init_pid(0, 4711), 0);
}

// A hook inside the container has its own pid namespace and names pids from it.
TEST(FirstProcess, OfAHookInsideIsTheFirstOfItsPids) {
  if (::geteuid() != 0) GTEST_SKIP() << "pids of their own take root";
  std::array<int, 2> said{};
  ASSERT_EQ(::pipe2(said.data(), O_CLOEXEC), 0);
  const pid_t runtime = ::fork();
  if (runtime == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(1);
    // The container's first process, and its hook. NOLINTNEXTLINE(misc-redundant-expression)
    if (::fork() == 0 && ::fork() == 0) {
      (void)!::write(said[1], "x", 1);
      ::pause();
    }
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(said[0], &byte, 1), 1);
  const auto child_of = [](pid_t pid) {
    const auto host = sys::Host::at("/");
    const auto text = host->read_value(fmt::format("/proc/{0}/task/{0}/children", pid));
    return static_cast<pid_t>(parse_u64(trim(text.value_or(""))).value_or(0));
  };
  const pid_t first = child_of(runtime);
  const pid_t hook = child_of(first);
  EXPECT_GT(hook, 1);
  EXPECT_EQ(container_init_pid(hook, 1), first);
  ::kill(first, SIGKILL);
  ::kill(runtime, SIGKILL);
  ::waitpid(runtime, nullptr, 0);
  ::close(said[0]);
  ::close(said[1]);
}

TEST(Records, AreFoundAgain) {
  const test::Tree tree;
  const auto host = tree.host();
  const ShareRecord record{.share = a_share(),
                           .cards = {{.uuid = {"GPU-1"}, .memory_bytes = 140}},
                           .holder = process_ref(::getpid()),
                           .adopted = {process_ref(1)},
                           .contained = {process_ref(::getpid())},
                           .attached = {process_ref(::getppid())}};
  ASSERT_TRUE(write_record(host, record).ok());
  EXPECT_TRUE(host.exists("/run/gantry/shares/train/fence/cuda"));
  const auto found = read_records(host);
  ASSERT_THAT(found.records, SizeIs(1));
  EXPECT_EQ(found.records[0].share, record.share);
  EXPECT_TRUE(is_running(found.records[0].holder));
  EXPECT_EQ(found.records[0].adopted, record.adopted);
  EXPECT_EQ(found.records[0].contained, record.contained);
  EXPECT_EQ(found.records[0].attached, record.attached);
  remove_record(host, "train");
  EXPECT_THAT(read_records(host).records, IsEmpty());
  EXPECT_FALSE(host.exists("/run/gantry/shares/train"));
}

// The result of `work` in a separate process whose /run/gantry is a file system of a few pages.
int with_little_room(const test::Tree& tree, const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto place = tree.path("run/gantry");
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", place.c_str(), "tmpfs", 0, "size=32k") != 0)
      ::_exit(77);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Records, WithoutRoomTheOldOneStaysWhole) {
  test::Tree tree;
  tree.directory("run/gantry");
  const int said = with_little_room(tree, [&] {
    const auto host = tree.host();
    ShareRecord record{.share = a_share(), .cards = {{.uuid = {"GPU-1"}, .memory_bytes = 140}}};
    if (!write_record(host, record).ok()) return 1;
    while (std::ofstream(tree.path("run/gantry/full"), std::ios::app)
           << std::string(1024, 'x') << std::flush) {
    }
    record.cards[0].memory_bytes = 141;
    const auto refused = write_record(host, record);
    if (refused.ok() || refused.error().text().find("df -h /run") == std::string::npos) return 2;
    const auto found = read_records(host);
    if (found.records.size() != 1 || found.records[0].cards[0].memory_bytes != 140) return 3;
    if (host.list("/run/gantry/shares/train")->size() != 2) return 4;  // share.json, fence
    return 0;
  });
  if (said == 77) GTEST_SKIP() << "needs mounts of its own";
  EXPECT_EQ(said, 0);
}

TEST(Records, WithNonsenseAreReportedAndLeftAlone) {
  test::Tree tree;
  tree.file("run/gantry/shares/bad/share.json", "{\"share\":");
  tree.directory("run/gantry/shares/half/fence");
  const auto found = read_records(tree.host());
  EXPECT_THAT(found.records, IsEmpty());
  ASSERT_THAT(found.problems, SizeIs(1));
  EXPECT_THAT(found.problems[0].text(), HasSubstr("bad/share.json"));
  EXPECT_TRUE(tree.host().exists("/run/gantry/shares/bad/share.json"));
  EXPECT_THAT(found.unfinished, ::testing::ElementsAre("half"));
  EXPECT_TRUE(tree.host().exists("/run/gantry/shares/half")) << "a daemon may be creating it";
}

TEST(Records, DoNotTakeAnotherProcessForTheOneThatWas) {
  auto process = process_ref(::getpid());
  EXPECT_TRUE(is_running(process));
  process.started += 1;
  EXPECT_FALSE(is_running(process));
}

}  // namespace
}  // namespace gantry::daemon
