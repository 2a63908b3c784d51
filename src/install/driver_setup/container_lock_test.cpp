// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/container_lock.hpp"

#include "install/driver_setup/machine_for_test.hpp"
#include "install/preflight/container_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_setup {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kLock = "run/nvidia/nvidia-driver.pid";

// A driver container that is at work.
class Container {
 public:
  explicit Container(test::Tree& tree) {
    tree.file(kLock, "4711\n").file("proc/4711/comm", "nvidia-driver\n");
    file_ = sys::UniqueFd(::open(tree.path(kLock).c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(::flock(file_.get(), LOCK_EX | LOCK_NB), 0);
    struct stat info {};
    EXPECT_EQ(::fstat(file_.get(), &info), 0);
    tree.file("proc/locks", fmt::format("1: FLOCK  ADVISORY  WRITE 4711 {:02x}:{:02x}:{} 0 EOF\n",
                                        major(info.st_dev), minor(info.st_dev), info.st_ino));
  }

 private:
  sys::UniqueFd file_;
};

bool is_locked(const test::Tree& tree) {
  const sys::UniqueFd file(::open(tree.path(kLock).c_str(), O_RDWR | O_CLOEXEC));
  return file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0;
}

TEST(ContainerLock, IsHeldAndThenGone) {
  test::Tree tree;
  tree.directory("run");
  const auto host = tree.host();
  {
    const auto lock = ContainerLock::take(host);
    ASSERT_TRUE(lock.ok()) << lock.error().text();
    EXPECT_TRUE(is_locked(tree));
    EXPECT_EQ(host.read_value("/run/nvidia/nvidia-driver.pid"), std::to_string(::getpid()));
    EXPECT_EQ(ContainerLock::take(host).error().code(), Errc::Busy);
  }
  EXPECT_FALSE(host.exists("/run/nvidia"));
}

TEST(ContainerLock, FileOfAContainerThatWasKilledIsNoLock) {
  test::Tree tree;
  tree.file(kLock, "4711\n").file("run/nvidia/validations/ready");
  const auto host = tree.host();
  EXPECT_FALSE(preflight::container_lock_holder(host));
  EXPECT_TRUE(ContainerLock::take(host).ok());
  EXPECT_TRUE(host.exists("/run/nvidia/validations/ready"));
}

TEST(ContainerLock, NamesTheContainerThatHasIt) {
  SetupMachine machine;
  const Container container(machine.tree());
  machine.archive(kNewDriver);
  const auto busy = machine.install(kNewDriver);
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.error().code(), Errc::Busy);
  EXPECT_THAT(busy.error().text(),
              AllOf(HasSubstr("NVIDIA's driver container is at work: process 4711 (nvidia-driver) "
                              "holds "),
                    HasSubstr("run/nvidia/nvidia-driver.pid"), HasSubstr("kubectl patch")));
  EXPECT_EQ(machine.loaded(), "");
}

TEST(ContainerLock, NoDriverIsLoadedOrRemovedBesideAContainer) {
  SetupMachine machine;
  machine.archive(kNewDriver);
  expect_ok(machine.install(kNewDriver));
  const auto installed = machine.modules();
  {
    const Container container(machine.tree());
    const auto removed = machine.remove();
    ASSERT_FALSE(removed.ok());
    EXPECT_THAT(removed.error().text(), HasSubstr("driver container is at work"));
    EXPECT_EQ(machine.modules(), installed);
    machine.reboot();
    const Container after_boot(machine.tree());
    const auto loaded = machine.load();
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code(), Errc::Busy);
  }
  expect_ok(machine.load());
}

TEST(ContainerLock, IsHeldWhileTheDriverIsChanged) {
  SetupMachine machine;
  machine.archive(kNewDriver);
  int seen = 0;
  machine.script.rule = [&](const std::string& entry) -> Status {
    if (!entry.starts_with("load ")) return {};
    ++seen;
    EXPECT_TRUE(is_locked(machine.tree())) << entry;
    return {};
  };
  expect_ok(machine.install(kNewDriver));
  EXPECT_GT(seen, 0);
  EXPECT_FALSE(machine.host().exists("/run/nvidia"));
}

// It is NVIDIA's container that changes the driver then.
TEST(ContainerLock, IsLeftToTheContainerThatIsWaitedFor) {
  SetupMachine machine;
  const Container container(machine.tree());
  const preflight::DriverRequest request{.source = preflight::Source::NvidiaContainer};
  const auto done = machine.install(request);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().text(), HasSubstr("driver container did not load a driver within"));
}

}  // namespace
}  // namespace gantry::driver_setup
