// SPDX-License-Identifier: Apache-2.0
#include "container/rootfs/mount.hpp"

#include "support/blocked_syscalls.hpp"
#include "support/tree.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gmock/gmock.h>

namespace gantry::rootfs {
namespace {

using test::Tree;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

bool own_namespace() {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

bool may_mount() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(own_namespace() ? 0 : 1);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0;
}

class MountTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!may_mount()) GTEST_SKIP() << "no mount namespace to be had here";
    tree_.file("driver/libcuda.so.1", "driver").directory("image/run").directory("image/usr");
    tree_.file("image/params", "ModifyDeviceFiles: 1\n").file("image/etc/there", "image's");
  }

  // Each body in a mount namespace of its own, with the mount calls of today and with those of 2.4.
  template <class Body>
  void everywhere(const Body& body) const {
    test::with_and_without_syscalls(
        {SYS_openat2, SYS_open_tree, SYS_move_mount, SYS_mount_setattr, SYS_statx}, [&] {
          // seccomp is there already: unshare and mount are not among the missing.
          ASSERT_TRUE(own_namespace());
          body();
        });
    // 5.2 to 5.11: open_tree without mount_setattr.
    test::run_in_child("without mount_setattr", [&] {
      test::block_syscalls({SYS_mount_setattr}, ENOSYS);
      ASSERT_TRUE(own_namespace());
      body();
    });
  }

  Root root() const { return *Root::at(tree_.path("image")); }
  sys::UniqueFd source(std::string_view path) const { return *tree_.host().open(path, O_PATH); }
  unsigned long flags(std::string_view path) const {
    struct statvfs found {};
    const auto fd = root().open(path, O_PATH);
    EXPECT_TRUE(fd.ok() && ::fstatvfs(fd->get(), &found) == 0);
    return found.f_flag;
  }

  Tree tree_;
};

TEST_F(MountTest, BindsADirectoryOfTheHostReadOnly) {
  everywhere([&] {
    const auto status = bind(root(), source("/driver").get(), "/usr/local/nvidia/lib64");
    ASSERT_TRUE(status.ok()) << status.error().text();
    EXPECT_EQ(*root().read("/usr/local/nvidia/lib64/libcuda.so.1", 100), "driver");
    const auto found = flags("/usr/local/nvidia/lib64");
    EXPECT_TRUE((found & ST_RDONLY) != 0 && (found & ST_NOSUID) != 0 && (found & ST_NODEV) != 0);
    EXPECT_EQ(root().put_file("/usr/local/nvidia/lib64/x", "x").error().sys_errno(), EROFS);
  });
}

TEST_F(MountTest, BindsAFileOverAFileAndOverNothing) {
  everywhere([&] {
    for (const auto* path : {"/etc/there", "/etc/new"}) {
      const auto status =
          bind(root(), source("/driver/libcuda.so.1").get(), path, {.no_exec = true});
      ASSERT_TRUE(status.ok()) << status.error().text();
      EXPECT_EQ(*root().read(path, 100), "driver");
      EXPECT_NE(flags(path) & ST_NOEXEC, 0U);
    }
  });
}

TEST_F(MountTest, ATargetThatLinksToTheHostIsMadeInside) {
  // CVE-2024-0133: no empty file appears on the host.
  tree_.directory("host").link("image/usr/local", tree_.path("host"));
  everywhere([&] {
    const auto status = bind(root(), source("/driver").get(), "/usr/local/nvidia");
    EXPECT_FALSE(status.ok());  // the link dangles inside the image
    EXPECT_THAT(*tree_.host().list("/host"), IsEmpty());
  });
}

TEST_F(MountTest, MountsContentThatIsOnNoDisk) {
  everywhere([&] {
    const auto status = bind_content(root(), "ModifyDeviceFiles: 0\n", "/params");
    ASSERT_TRUE(status.ok()) << status.error().text();
    EXPECT_EQ(*root().read("/params", 100), "ModifyDeviceFiles: 0\n");
    EXPECT_NE(flags("/params") & ST_RDONLY, 0U);
    EXPECT_THAT(*root().list("/run"), IsEmpty());  // nothing is left where it was made
    EXPECT_FALSE(bind_content(root(), "x", "/missing").ok());
  });
  EXPECT_EQ(*tree_.host().read("/image/params"), "ModifyDeviceFiles: 1\n");
}

TEST_F(MountTest, ADirectoryIsNoPlaceForAFile) {
  test::run_in_child("here", [&] {
    ASSERT_TRUE(own_namespace());
    const auto status = bind(root(), source("/driver/libcuda.so.1").get(), "/usr");
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Errc::Exists);
  });
}

TEST_F(MountTest, NothingIsMountedWhereItWouldShowUpOutside) {
  everywhere([&] {
    const std::string shared = tree_.path("image/usr");
    ASSERT_EQ(::mount(shared.c_str(), shared.c_str(), nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(::mount(nullptr, shared.c_str(), nullptr, MS_SHARED, nullptr), 0);
    const auto avoid = shared_mounts();
    ASSERT_TRUE(avoid.ok()) << avoid.error().text();
    const sys::UniqueFd source(::open(tree_.path("driver").c_str(), O_PATH | O_CLOEXEC));
    const auto refused = bind(root(), source.get(), "/usr/lib", {.avoid = &*avoid});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Errc::Denied);
    EXPECT_THAT(refused.error().text(), ::testing::HasSubstr("shared propagation"));
    const auto elsewhere = bind(root(), source.get(), "/run/driver", {.avoid = &*avoid});
    EXPECT_TRUE(elsewhere.ok()) << elsewhere.error().text();
  });
}

TEST_F(MountTest, NothingIsMadeOnTheWayToAPlaceThatIsRefused) {
  everywhere([&] {
    const std::string shared = tree_.path("image/usr");
    ASSERT_EQ(::mount(shared.c_str(), shared.c_str(), nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(::mount(nullptr, shared.c_str(), nullptr, MS_SHARED, nullptr), 0);
    const auto avoid = shared_mounts();
    ASSERT_TRUE(avoid.ok()) << avoid.error().text();
    for (const auto* path : {"/usr/local/nvidia/lib64", "usr/x", "/usr//y/"}) {
      const auto refused = bind(root(), source("/driver").get(), path, {.avoid = &*avoid});
      ASSERT_FALSE(refused.ok()) << path;
      EXPECT_THAT(refused.error().text(), HasSubstr("shared propagation"));
    }
    EXPECT_THAT(*tree_.host().list("/image/usr"), IsEmpty());
  });
}

// An image's symlink leads every write of ours into a volume: /etc -> /data.
class VolumeTest : public MountTest {
 protected:
  void SetUp() override {
    MountTest::SetUp();
    if (IsSkipped()) return;
    tree_.directory("volume/there").directory("image/data").link("image/etc2", "/data");
    tree_.file("volume/ld.so.cache", "the host's").file("volume/file", "the host's");
  }
  void mount_volume() const {
    const auto from = tree_.path("volume");
    const auto to = tree_.path("image/data");
    ASSERT_EQ(::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr), 0);
  }
  void mount_memory(const char* where) const {
    ASSERT_EQ(::mount("tmpfs", tree_.path(where).c_str(), "tmpfs", 0, nullptr), 0);
  }
};

void refused_as_foreign(const Status& status) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().sys_errno(), EXDEV) << status.error().text();
  EXPECT_THAT(status.error().text(), HasSubstr("on a volume"));
}

TEST_F(VolumeTest, NothingInAVolumeIsChanged) {
  everywhere([&] {
    mount_volume();
    refused_as_foreign(root().put_file("/etc2/ld.so.cache", "ours"));
    refused_as_foreign(root().put_file("/data/new", "ours"));
    refused_as_foreign(root().put_symlink("/etc2/libcuda.so", "libcuda.so.1"));
    refused_as_foreign(root().remove("/etc2/ld.so.cache"));
    refused_as_foreign(root().set_mode("/etc2/file", 0777));
    const auto made = root().make_directories("/etc2/a/b");
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().sys_errno(), EXDEV);
    EXPECT_TRUE(root().remove("/etc2/none").ok());
    EXPECT_TRUE(root().put_file("/usr/own", "ours").ok());
    EXPECT_TRUE(root().remove("/usr/own").ok());
  });
  EXPECT_THAT(*tree_.host().list("/volume"), ElementsAre("file", "ld.so.cache", "there"));
  EXPECT_EQ(*tree_.host().read("/volume/ld.so.cache"), "the host's");
}

TEST_F(VolumeTest, NoMountPointIsMadeInAVolumeButOneThatIsThereWillDo) {
  everywhere([&] {
    mount_volume();
    EXPECT_FALSE(bind(root(), source("/driver").get(), "/etc2/lib64").ok());
    EXPECT_FALSE(bind(root(), source("/driver/libcuda.so.1").get(), "/etc2/new").ok());
    const auto there = bind(root(), source("/driver").get(), "/etc2/there");
    ASSERT_TRUE(there.ok()) << there.error().text();
    EXPECT_EQ(*root().read("/data/there/libcuda.so.1", 100), "driver");
  });
  EXPECT_THAT(*tree_.host().list("/volume"), ElementsAre("file", "ld.so.cache", "there"));
}

TEST_F(VolumeTest, MemoryOfTheContainersOwnIsWrittenAsTheRootIs) {
  everywhere([&] {
    mount_memory("image/run");
    EXPECT_TRUE(root().put_file("/run/nvidia/x", "ours").ok());
    EXPECT_TRUE(bind(root(), source("/driver").get(), "/run/driver").ok());
  });
}

TEST_F(VolumeTest, MemoryOfTheHostIsAVolumeToo) {
  everywhere([&] {
    mount_memory("volume/there");
    const auto from = tree_.path("volume/there");
    const auto to = tree_.path("image/data");
    ASSERT_EQ(::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr), 0);
    refused_as_foreign(root().put_file("/etc2/ld.so.cache", "ours"));
  });
}

}  // namespace
}  // namespace gantry::rootfs
