// SPDX-License-Identifier: Apache-2.0
#include "base/sys/kernel.hpp"

#include "support/tree.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace gantry::sys {
namespace {

TEST(Kernel, MakesDirectoriesWithTheirParentsInsideTheRoot) {
  test::Tree tree;
  const Host host = tree.host();
  const auto kernel = real_kernel();
  ASSERT_TRUE(kernel->make_directory(host, "/dev/nvidia-caps/deep").ok());
  EXPECT_TRUE(host.exists("/dev/nvidia-caps/deep"));
  EXPECT_TRUE(kernel->make_directory(host, "/dev/nvidia-caps/deep").ok());
}

TEST(Kernel, ReplacesASymlinkAndLeavesNoTemporaryBehind) {
  test::Tree tree;
  tree.link("dev/char/195:0", "../wrong");
  const Host host = tree.host();
  ASSERT_TRUE(real_kernel()->make_symlink(host, "/dev/char/195:0", "../nvidia0").ok());
  EXPECT_EQ(*host.link("/dev/char/195:0"), "../nvidia0");
  EXPECT_EQ(host.list("/dev/char")->size(), 1U);
}

TEST(Kernel, RefusesToPutASymlinkOverADirectory) {
  test::Tree tree;
  tree.directory("dev/char/195:0");
  const Host host = tree.host();
  EXPECT_FALSE(real_kernel()->make_symlink(host, "/dev/char/195:0", "../nvidia0").ok());
  EXPECT_EQ(host.list("/dev/char")->size(), 1U);
}

TEST(Kernel, WritesAValueOverALongerOne) {
  test::Tree tree;
  tree.file("sys/power/control", "auto\n");
  const Host host = tree.host();
  ASSERT_TRUE(real_kernel()->write_value(host, "/sys/power/control", "on").ok());
  EXPECT_EQ(host.read_value("/sys/power/control"), "on");
}

TEST(Kernel, NeitherWaitsForAFifosReaderNorWritesToIt) {
  test::Tree tree;
  ASSERT_EQ(::mkfifo(tree.path("value").c_str(), 0600), 0);
  EXPECT_FALSE(real_kernel()->write_value(tree.host(), "/value", "on").ok());
  const UniqueFd reader(::open(tree.path("value").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(real_kernel()->write_value(tree.host(), "/value", "on").error().code(), Errc::Invalid);
}

TEST(Kernel, CreatesNoFileWhenTheValueHasNone) {
  test::Tree tree;
  const Host host = tree.host();
  EXPECT_EQ(real_kernel()->write_value(host, "/sys/nothing", "on").error().code(), Errc::NotFound);
  EXPECT_FALSE(host.exists("/sys/nothing"));
}

TEST(Kernel, WritesAWholeFileWithItsDirectoriesAndKeepsTheOldOnesMode) {
  test::Tree tree;
  tree.file("etc/old.conf", "a longer text than the new one\n");
  ASSERT_EQ(::chmod(tree.path("etc/old.conf").c_str(), 0640), 0);
  const Host host = tree.host();
  const auto kernel = real_kernel();
  ASSERT_TRUE(kernel->write_file(host, "/etc/old.conf", "new\n").ok());
  EXPECT_EQ(*host.read("/etc/old.conf"), "new\n");
  EXPECT_EQ(host.info("/etc/old.conf")->mode, 0640U);
  ASSERT_TRUE(kernel->write_file(host, "/etc/modprobe.d/deep/new.conf", "x\n").ok());
  EXPECT_EQ(host.info("/etc/modprobe.d/deep/new.conf")->mode, 0644U);
  EXPECT_EQ(host.list("/etc")->size(), 2U);
}

TEST(Kernel, FollowsAFilesLinkInsideTheRootOnly) {
  test::Tree tree;
  tree.file("usr/etc/real.conf", "old\n").link("etc/conf", "/usr/etc/real.conf");
  const Host host = tree.host();
  ASSERT_TRUE(real_kernel()->write_file(host, "/etc/conf", "new\n").ok());
  EXPECT_EQ(*host.read("/usr/etc/real.conf"), "new\n");
  EXPECT_TRUE(host.link("/etc/conf").ok());
}

TEST(Kernel, WritesNoFileOverSomethingElseAndRemovesNoDirectory) {
  test::Tree tree;
  tree.directory("etc/conf");
  const Host host = tree.host();
  EXPECT_FALSE(real_kernel()->write_file(host, "/etc/conf", "x").ok());
  EXPECT_FALSE(real_kernel()->remove_file(host, "/etc/conf").ok());
  EXPECT_TRUE(host.exists("/etc/conf"));
  tree.file("etc/file");
  EXPECT_TRUE(real_kernel()->remove_file(host, "/etc/file").ok());
  EXPECT_FALSE(host.exists("/etc/file"));
}

TEST(Kernel, EndsAProgramAtItsDeadline) {
  const auto begin = std::chrono::steady_clock::now();
  const auto status = real_kernel()->run(*Host::at("/"), {"sleep", "30"}, std::chrono::seconds(1));
  EXPECT_FALSE(status.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";

TEST(Kernel, RunsNoProgramOfATreeThatOnlyCopiesThisMachine) {
  test::Tree tree;
  tree.file(kBootId + 1, *Host::at("/")->read(kBootId));
  const auto kernel = real_kernel();
  EXPECT_FALSE(kernel->is_this_machine(tree.host()));
  EXPECT_EQ(kernel->run(tree.host(), {"touch", "/ran"}, std::chrono::seconds(10)).error().code(),
            Errc::Denied);
  EXPECT_EQ(kernel->load_module(tree.host(), "nvidia").error().code(), Errc::Denied);
  EXPECT_TRUE(kernel->is_this_machine(*Host::at("/")));
}

TEST(Kernel, NamesATemporaryFileBesideTheFile) {
  EXPECT_EQ(temporary_of("/a/b"), "/a/.b.gantry");
  EXPECT_EQ(temporary_of("b"), ".b.gantry");
}

// As in a pod, which sees its machine at /host.
TEST(Kernel, KnowsThisMachineByItsBootAndASimulatedOneByItsMark) {
  test::Tree tree;
  tree.directory("proc");
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, "") != 0 ||
        ::mount("/proc", tree.path("proc").c_str(), nullptr, MS_BIND, "") != 0) {
      ::_exit(2);
    }
    const bool known = real_kernel()->is_this_machine(tree.host());
    tree.file(".gantry-sim", "gantry-sim 1\n");
    ::_exit(known && !real_kernel()->is_this_machine(tree.host()) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "mounting needs root";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace gantry::sys
