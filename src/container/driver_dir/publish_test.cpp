// SPDX-License-Identifier: Apache-2.0
#include "container/driver_dir/publish.hpp"

#include "container/driver_dir/current.hpp"
#include "container/plan/driver_paths.hpp"
#include "support/blocked_syscalls.hpp"
#include "support/tree.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

namespace gantry::driver_dir {
namespace {

using enum model::Capability;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kLibraries = "/usr/lib/x86_64-linux-gnu";

class Publish : public ::testing::Test {
 protected:
  Publish() {
    machine_.driver = {
        .version = "580.159.04", .library_version = "580.159.04", .library_directory = kLibraries};
    add_library("libcuda", Compute);
    add_library("libnvidia-ml", Utility);
    add_library("libGLX_nvidia", Graphics);
    add({.path = "/usr/bin/nvidia-smi",
         .kind = model::DriverFileKind::Binary,
         .capabilities = {Utility}});
  }

  void add(model::DriverFile file) {
    tree_.file(file.path, file.path);
    machine_.files.push_back(std::move(file));
  }
  void add_library(const std::string& stem, model::Capability capability) {
    add({.path = fmt(stem + ".so.580.159.04"),
         .capabilities = {capability},
         .soname = stem + ".so.1",
         .links = {stem + ".so", stem + ".so.1"}});
  }
  static std::string fmt(const std::string& name) { return std::string(kLibraries) + "/" + name; }

  // The driver in a directory that holds nothing else; its libcuda.
  std::string have_own_directory() {
    machine_.files.clear();
    machine_.driver.root = "/usr/local/nvidia";
    machine_.driver.library_directory = "/usr/local/nvidia/lib64";
    std::string file = "/usr/local/nvidia/lib64/libcuda.so.580.159.04";
    add({.path = file,
         .capabilities = {Compute},
         .soname = "libcuda.so.1",
         .links = {"libcuda.so.1"}});
    tree_.link("/usr/local/nvidia/lib64/libcuda.so.1", "libcuda.so.580.159.04");
    return file;
  }

  std::string in_current(const std::string& path) const {
    return tree_.path(std::string(plan::kCurrentDriverLink) + "/" + path);
  }
  Result<PublishResult> publish_now() { return publish(tree_.host(), machine_); }

  test::Tree tree_;
  model::Inventory machine_;
};

TEST_F(Publish, TheLibrariesAreThereUnderEveryName) {
  const auto published = publish_now();
  ASSERT_TRUE(published.ok()) << published.error().text();
  EXPECT_EQ(published->outcome, PublishOutcome::Created);
  EXPECT_THAT(published->directory, StartsWith("/var/lib/gantry/driver/580.159.04-"));
  const auto host = tree_.host();
  for (const auto* name : {"libcuda.so", "libcuda.so.1", "libcuda.so.580.159.04"}) {
    EXPECT_EQ(host.read(std::string(plan::kCurrentDriverLink) + "/lib64/" + name).value_or(""),
              fmt("libcuda.so.580.159.04"));
  }
  EXPECT_EQ(current(host)->version, "580.159.04");
}

TEST_F(Publish, FilesAreHardLinks) {
  ASSERT_TRUE(publish_now().ok());
  struct stat theirs {};
  struct stat ours {};
  ASSERT_EQ(::stat(tree_.path(fmt("libcuda.so.580.159.04")).c_str(), &theirs), 0);
  ASSERT_EQ(::stat(in_current("sets/compute/lib64/libcuda.so.1").c_str(), &ours), 0);
  EXPECT_EQ(theirs.st_ino, ours.st_ino);
}

TEST_F(Publish, ASetHasWhatItsCapabilitiesNeed) {
  ASSERT_TRUE(publish_now().ok());
  EXPECT_TRUE(std::filesystem::exists(in_current("sets/compute+utility/lib64/libcuda.so.1")));
  EXPECT_TRUE(std::filesystem::exists(in_current("sets/compute+utility/lib64/libnvidia-ml.so.1")));
  EXPECT_FALSE(
      std::filesystem::exists(in_current("sets/compute+utility/lib64/libGLX_nvidia.so.1")));
  EXPECT_TRUE(std::filesystem::exists(in_current("sets/graphics/lib64/libGLX_nvidia.so.1")));
  EXPECT_TRUE(std::filesystem::exists(in_current("bin/nvidia-smi")));
}

TEST_F(Publish, ConfigurationHasItsPlaceInAContainerWhereverTheDriverKeepsIt) {
  add({.path = "/opt/driver-580.159.04/etc/OpenCL/vendors/nvidia.icd",
       .kind = model::DriverFileKind::Config,
       .capabilities = {Compute}});
  ASSERT_TRUE(publish_now().ok());
  EXPECT_TRUE(
      tree_.host()
          .read(std::string(plan::kCurrentDriverLink) + "/config/etc/OpenCL/vendors/nvidia.icd")
          .ok());
}

TEST_F(Publish, ASecondTimeChangesNothing) {
  const auto first = publish_now();
  const auto second = publish_now();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->outcome, PublishOutcome::Unchanged);
  EXPECT_EQ(first->directory, second->directory);
}

TEST_F(Publish, AFileThatOthersMayChangeIsRefusedByName) {
  std::filesystem::permissions(tree_.path(fmt("libnvidia-ml.so.580.159.04")),
                               std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  const auto refused = publish_now();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(refused.error().text(), HasSubstr("libnvidia-ml.so.580.159.04"));
}

TEST_F(Publish, ADriverWithoutLibrariesReplacesNothing) {
  ASSERT_TRUE(publish_now().ok());
  machine_.files.clear();
  EXPECT_EQ(publish_now().error().code(), Errc::NotFound);
  EXPECT_TRUE(current(tree_.host()).ok());
}

TEST_F(Publish, AChangedFileMakesANewDirectory) {
  const auto first = publish_now();
  tree_.file(fmt("libcuda.so.580.159.04"), "another one, of the same version");
  const auto second = publish_now();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->outcome, PublishOutcome::Created);
  EXPECT_NE(first->directory, second->directory);
  EXPECT_TRUE(tree_.host().exists(first->directory));
}

// collect_garbage() keeps it for a while from that moment, not from the one at which it was made.
TEST_F(Publish, TheDirectoryThatIsLeftIsTouched) {
  const auto first = publish_now();
  ASSERT_TRUE(first.ok()) << first.error().text();
  const auto changed = [&] {
    struct stat status {};
    EXPECT_EQ(::stat(tree_.path(first->directory).c_str(), &status), 0);
    return std::pair(status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
  };
  const auto before = changed();
  ::usleep(20'000);  // longer than the kernel's tick
  ASSERT_EQ(publish_now()->outcome, PublishOutcome::Unchanged);
  EXPECT_EQ(changed(), before);
  tree_.file(fmt("libcuda.so.580.159.04"), "another one, of the same version");
  ASSERT_EQ(publish_now()->outcome, PublishOutcome::Created);
  EXPECT_GT(changed(), before);
}

TEST_F(Publish, ADirectoryThatIsStillThereIsPutInForceAgain) {
  const auto first = publish_now();
  std::filesystem::remove(tree_.path(plan::kCurrentDriverLink));
  const auto again = publish_now();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->outcome, PublishOutcome::Switched);
  EXPECT_EQ(again->directory, first->directory);
}

TEST_F(Publish, AnIncompleteDirectoryIsReplaced) {
  const auto first = publish_now();
  std::filesystem::remove(tree_.path(first->directory + "/manifest.json"));
  EXPECT_EQ(current(tree_.host()).error().code(), Errc::Corrupt);
  const auto again = publish_now();
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(again->outcome, PublishOutcome::Created);
  EXPECT_TRUE(current(tree_.host()).ok());
}

TEST_F(Publish, LinksInsideAreRelative) {
  ASSERT_TRUE(publish_now().ok());
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(tree_.path(plan::kDriverDirectories))) {
    if (entry.is_symlink()) {
      EXPECT_TRUE(std::filesystem::read_symlink(entry).is_relative()) << entry.path();
    }
  }
}

TEST_F(Publish, ADriverWithADirectoryOfItsOwnIsUsedFromThere) {
  const auto file = have_own_directory();
  ASSERT_TRUE(publish_now().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(in_current("lib64")));
  const auto host = tree_.host();
  EXPECT_EQ(*host.resolve(std::string(plan::kCurrentDriverLink) + "/lib64"),
            "/usr/local/nvidia/lib64");
  EXPECT_EQ(*host.read(std::string(plan::kCurrentDriverLink) + "/sets/compute/lib64/libcuda.so.1"),
            file);
}

TEST_F(Publish, ADirectoryWithTheHostsLibcIsNoDirectoryOfTheDriver) {
  machine_.files.clear();
  machine_.driver.root = "/run/nvidia/driver";
  machine_.driver.library_directory = "/run/nvidia/driver/usr/lib64";
  add({.path = "/run/nvidia/driver/usr/lib64/libcuda.so.580.159.04",
       .capabilities = {Compute},
       .soname = "libcuda.so.1",
       .links = {"libcuda.so.1"}});
  tree_.file("/run/nvidia/driver/usr/lib64/libc.so.6", "not for containers");
  ASSERT_TRUE(publish_now().ok());
  EXPECT_FALSE(std::filesystem::is_symlink(in_current("lib64")));
  EXPECT_FALSE(std::filesystem::exists(in_current("lib64/libc.so.6")));
}

TEST_F(Publish, PublishersAtOnceAgree) {
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(publish_now().ok() ? 0 : 1);
    children.push_back(child);
  }
  for (const auto child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(current(tree_.host()).ok());
  EXPECT_FALSE(
      std::filesystem::exists(tree_.path(std::string(plan::kDriverDirectories) + "/.making")));
}

// Whenever it is killed, there is the old directory or the new one, whole, and the next call works.
TEST_F(Publish, KilledAtAnyPointNothingIsHalf) {
  for (int round = 0; round < 40; ++round) {
    tree_.file(fmt("libcuda.so.580.159.04"), "round " + std::to_string(round));
    const auto before = current(tree_.host());
    const auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(publish_now().ok() ? 0 : 1);
    ::usleep(static_cast<useconds_t>(round * 200));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto after = current(tree_.host());
    EXPECT_TRUE(after.ok() || (!before.ok() && after.error().code() == Errc::NotFound));
    if (round % 8 == 7) {
      const auto published = publish_now();
      ASSERT_TRUE(published.ok()) << published.error().text();
    }
  }
}

// Nothing can be linked from one file system to another, and 700 MB are not copied: every set is
// the whole directory.
TEST_F(Publish, ADirectoryOfItsOwnOnAnotherFileSystemIsMountedWhole) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const auto file = have_own_directory();
  tree_.directory("/var/lib");
  test::run_in_child("on two file systems", [&] {
    if (::unshare(CLONE_NEWNS) != 0) return;
    ASSERT_EQ(::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(::mount("none", tree_.path("/var/lib").c_str(), "tmpfs", 0, nullptr), 0);
    const auto published = publish_now();
    ASSERT_TRUE(published.ok()) << published.error().text();
    EXPECT_EQ(published->way, "the driver's own directory");
    const auto host = tree_.host();
    for (const std::string set : {"compute", "utility", "compute+utility"}) {
      const auto place = std::string(plan::kCurrentDriverLink) + "/sets/" + set + "/lib64";
      EXPECT_EQ(host.resolve(place).value_or("nowhere"), "/usr/local/nvidia/lib64") << set;
    }
    EXPECT_EQ(host.read(std::string(plan::kCurrentDriverLink) + "/sets/compute/lib64/libcuda.so.1")
                  .value_or(""),
              file);
    EXPECT_EQ(publish_now()->outcome, PublishOutcome::Unchanged);
  });
}

// On a file system of its own, which has room for one directory and not for two.
TEST_F(Publish, OnAFullDiskTheOldOneStays) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  tree_.directory("/var/lib");
  const auto place = tree_.path("/var/lib");
  const auto child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", place.c_str(), "tmpfs", 0, "nr_inodes=300") != 0) {
      ::_exit(77);
    }
    const auto first = publish_now();
    if (!first.ok() || first->way != "copies") ::_exit(1);
    tree_.file(fmt("libcuda.so.580.159.04"), "an upgrade");
    const auto second = publish_now();
    const auto now = current(tree_.host());
    const bool kept = now.ok() && now->directory == first->directory;
    const bool clean = !std::filesystem::exists(place + "/gantry/driver/.making");
    ::_exit(!second.ok() && second.error().sys_errno() == ENOSPC && kept && clean ? 0 : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gantry::driver_dir
