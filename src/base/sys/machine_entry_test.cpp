// SPDX-License-Identifier: Apache-2.0
#include "base/sys/machine_entry.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
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

namespace gantry::sys {
namespace {

// A process that plays the first one of a machine: it has a mount namespace of its own, in which
// the tree's directory "inside" has a file that is seen nowhere else.
class FirstProcess {
 public:
  explicit FirstProcess(const test::Tree& tree) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd told(ends[0]);
    UniqueFd tell(ends[1]);
    const auto directory = tree.path("inside");
    const auto file = directory + "/file";
    pid_ = ::fork();
    if (pid_ == 0) {
      const bool made = ::unshare(CLONE_NEWNS) == 0 &&
                        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                        ::mount("none", directory.c_str(), "tmpfs", 0, nullptr) == 0;
      const char answer = made ? 'y' : 'n';
      if (made) ::close(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
      if (::write(tell.get(), &answer, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    tell.reset();
    char answer = 'n';
    made_ = ::read(told.get(), &answer, 1) == 1 && answer == 'y';
  }
  ~FirstProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  FirstProcess(const FirstProcess&) = delete;
  FirstProcess& operator=(const FirstProcess&) = delete;
  bool made() const { return made_; }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  bool made_ = false;
};

class MachineEntryTest : public ::testing::Test {
 protected:
  MachineEntryTest() { tree_.directory("inside").directory("proc/1/ns"); }
  std::string run(const std::vector<std::string>& argv) {
    const auto host = tree_.host();
    const auto entry = MachineEntry::of(host);
    const auto done = run_command(argv, {.before = [&] { return entry.enter(); }});
    return done.ok() ? fmt::format("{} {}", done->status, trim(done->output)) : done.error().text();
  }
  test::Tree tree_;
};

// systemctl makes the same comparison: if it fails, "stop" does nothing and succeeds.
TEST_F(MachineEntryTest, ProgramSeesTheMachineOfTheFirstProcess) {
  const FirstProcess first(tree_);
  if (!first.made()) GTEST_SKIP() << "needs the right to make mount namespaces (CAP_SYS_ADMIN)";
  tree_.link("proc/1/ns/mnt", fmt::format("/proc/{}/ns/mnt", first.pid()));
  tree_.link("proc/1/root", tree_.root());
  const auto file = tree_.path("inside/file");
  ASSERT_NE(::access(file.c_str(), F_OK), 0) << "only the other namespace has it";
  EXPECT_EQ(run({"ls", file}), fmt::format("0 {}", file));
  const auto compare = fmt::format("[ / -ef /proc/{}/root ] && echo no chroot", first.pid());
  EXPECT_EQ(run({"sh", "-c", compare}), "0 no chroot");
}

TEST_F(MachineEntryTest, TreeThatIsNotItsRootIsEnteredByChroot) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root for chroot";
  tree_.link("proc/1/root", "/").link("proc/1/ns/mnt", "/proc/1/ns/mnt");
  // The tree has no programs: inside it, sh is not found.
  EXPECT_THAT(run({"sh", "-c", "echo outside"}), ::testing::StartsWith("127 "));
}

}  // namespace
}  // namespace gantry::sys
