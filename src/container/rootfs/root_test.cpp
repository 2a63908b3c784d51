// SPDX-License-Identifier: Apache-2.0
#include "container/rootfs/root.hpp"

#include "support/blocked_syscalls.hpp"
#include "support/tree.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <thread>

namespace gantry::rootfs {
namespace {

using test::Tree;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The image below "image", the host's files beside it.
class RootTest : public ::testing::Test {
 protected:
  RootTest() { tree_.directory("image/etc").file("host/etc/ld.so.cache", "the host's"); }
  Root root() const { return *Root::at(tree_.path("image")); }
  std::string host(std::string_view inside) const {
    return tree_.path("host" + std::string(inside));
  }
  std::string read(std::string_view inside) const { return *tree_.host().read(inside); }
  template <class Body>
  void everywhere(const Body& body) const {
    test::with_and_without_syscalls({SYS_openat2}, body);
  }
  Tree tree_;
};

TEST_F(RootTest, LinksOfTheImageStayInTheImage) {
  tree_.link("image/etc/ld.so.cache", host("/etc/ld.so.cache"))
      .link("image/up", "../../../../../../../host/etc/ld.so.cache")
      .link("image/lib", "/")
      .file("image/x", "inside");
  everywhere([&] {
    EXPECT_EQ(root().read("/etc/ld.so.cache", 100).error().code(), Errc::NotFound);
    EXPECT_EQ(root().read("/up", 100).error().code(), Errc::NotFound);
    EXPECT_EQ(*root().read("/lib/lib/../lib/x", 100), "inside");
  });
}

TEST_F(RootTest, MagicLinksAreNotFollowed) {
  const sys::UniqueFd proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(proc.valid());
  // The root is the machine's own here, and procfs is in it: /proc/self/root is no way to "/".
  const auto machine = *Root::at("/");
  EXPECT_FALSE(machine.open("/proc/self/root/etc", O_PATH).ok());
  EXPECT_FALSE(machine.open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK).ok());
}

TEST_F(RootTest, KnowsWhereAPathLeads) {
  tree_.link("image/conf", "/data/x").directory("image/data/x").link("image/dangling", "/none");
  everywhere([&] {
    EXPECT_EQ(*root().real_path("/conf/ld.so.cache"), "/data/x/ld.so.cache");
    EXPECT_EQ(*root().real_path("/conf/a/b"), "/data/x/a/b");
    EXPECT_EQ(*root().real_path("/conf"), "/data/x");
    EXPECT_EQ(*root().real_path("/new/a"), "/new/a");
    EXPECT_EQ(*root().real_path("/dangling/a"), "/none/a");
    EXPECT_EQ(*root().real_path("/new/../conf"), "/data/x");
    EXPECT_EQ(*root().real_path("/../../data"), "/data");
  });
}

TEST_F(RootTest, ReadsRegularFilesOfBoundedSizeOnly) {
  tree_.file("image/small", "12345");
  ASSERT_EQ(::mkfifo(tree_.path("image/fifo").c_str(), 0644), 0);
  ASSERT_EQ(::truncate(tree_.file("image/huge").path("image/huge").c_str(), 1LL << 40), 0);
  everywhere([&] {
    EXPECT_EQ(*root().read("/small", 5), "12345");
    EXPECT_EQ(root().read("/small", 4).error().code(), Errc::Corrupt);
    EXPECT_EQ(root().read("/huge", 1 << 16).error().code(), Errc::Corrupt);
    EXPECT_EQ(root().read("/fifo", 100).error().code(), Errc::Invalid);
    EXPECT_EQ(root().read("/etc", 100).error().code(), Errc::Invalid);
  });
}

TEST_F(RootTest, ADirectoryWithTooManyNamesIsCorrupt) {
  for (int i = 0; i < 10; ++i) tree_.file("image/many/" + std::to_string(i));
  EXPECT_EQ(root().list("/many", 10)->size(), 10U);
  EXPECT_EQ(root().list("/many", 9).error().code(), Errc::Corrupt);
}

TEST_F(RootTest, PutsAFileThroughTheImagesLinksButNotOutOfIt) {
  // CVE-2025-23267: /etc or the file itself a link to a path of the host.
  tree_.remove("image/etc").link("image/etc", host("/etc")).directory("image" + host("/etc"));
  everywhere([&] {
    ASSERT_TRUE(root().put_file("/etc/ld.so.cache", "ours").ok());
    EXPECT_EQ(*root().read("/etc/ld.so.cache", 100), "ours");
    EXPECT_EQ(read("/host/etc/ld.so.cache"), "the host's");
  });
}

TEST_F(RootTest, ALinkInTheFilesPlaceIsReplacedNotFollowed) {
  tree_.file("image/victim", "kept");
  everywhere([&] {
    for (const auto& target : {host("/etc/ld.so.cache"), std::string("/victim")}) {
      tree_.link("image/etc/ld.so.cache", target);
      ASSERT_TRUE(root().put_file("/etc/ld.so.cache", "ours").ok());
      EXPECT_EQ(root().link_info("/etc/ld.so.cache")->kind, sys::FileKind::Regular);
    }
    EXPECT_EQ(read("/host/etc/ld.so.cache"), "the host's");
    EXPECT_EQ(read("/image/victim"), "kept");
  });
}

TEST_F(RootTest, AFifoInTheFilesPlaceIsReplaced) {
  ASSERT_EQ(::mkfifo(tree_.path("image/etc/fifo").c_str(), 0644), 0);
  ASSERT_TRUE(root().put_file("/etc/fifo", "ours").ok());
  EXPECT_EQ(*root().read("/etc/fifo", 100), "ours");
}

TEST_F(RootTest, ADirectoryInTheFilesPlaceIsAnError) {
  tree_.directory("image/etc/ld.so.cache");
  const auto status = root().put_file("/etc/ld.so.cache", "ours");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Exists);
  EXPECT_THAT(status.error().text(), HasSubstr("it is a directory"));
  EXPECT_THAT(*root().list("/etc"), ElementsAre("ld.so.cache"));
}

TEST_F(RootTest, KeepsOwnerAndModeOfWhatItReplaces) {
  tree_.file("image/etc/ld.so.conf", "old");
  const auto path = tree_.path("image/etc/ld.so.conf");
  const bool is_root = ::geteuid() == 0;
  if (is_root && ::chown(path.c_str(), 1234, 5678) != 0) FAIL() << "chown";
  ASSERT_EQ(::chmod(path.c_str(), 04640), 0);
  ASSERT_TRUE(root().put_file("/etc/ld.so.conf", "new").ok());
  const auto info = *root().info("/etc/ld.so.conf");
  EXPECT_EQ(info.mode, 0640U);  // and not setuid, whatever the image had
  EXPECT_EQ(info.uid, is_root ? 1234U : ::geteuid());
  EXPECT_EQ(info.gid, is_root ? 5678U : ::getegid());
}

TEST_F(RootTest, NewFilesBelongToWhomTheDirectoryBelongs) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  ASSERT_EQ(::chown(tree_.path("image/etc").c_str(), 100000, 100001), 0);
  ASSERT_TRUE(root().put_file("/etc/ld.so.conf.d/00-gantry.conf", "x").ok());
  for (const auto* path : {"/etc/ld.so.conf.d", "/etc/ld.so.conf.d/00-gantry.conf"}) {
    EXPECT_EQ(root().info(path)->uid, 100000U) << path;
    EXPECT_EQ(root().info(path)->gid, 100001U) << path;
  }
  ASSERT_TRUE(root().put_symlink("/etc/link", "x").ok());
  EXPECT_EQ(root().link_info("/etc/link")->uid, 100000U);
}

TEST_F(RootTest, MakesDirectoriesInside) {
  tree_.link("image/usr", "/real").directory("image/real").link("image/dangling", "/nowhere");
  everywhere([&] {
    ASSERT_TRUE(root().make_directories("/usr/local/../local/nvidia//lib64").ok());
    EXPECT_EQ(root().info("/real/local/nvidia/lib64")->kind, sys::FileKind::Directory);
    EXPECT_FALSE(root().make_directories("/dangling/x").ok());
    EXPECT_TRUE(root().make_directories("/../../a").ok());
    EXPECT_EQ(root().info("/a")->mode, 0755U);
  });
  EXPECT_FALSE(std::filesystem::exists(tree_.path("a")));
}

TEST_F(RootTest, PutsLinksAndLeavesEqualOnes) {
  everywhere([&] {
    ASSERT_TRUE(root().put_symlink("/usr/lib/libcuda.so", "libcuda.so.1").ok());
    const auto before = root().link_info("/usr/lib/libcuda.so");
    ASSERT_TRUE(root().put_symlink("/usr/lib/libcuda.so", "libcuda.so.1").ok());
    EXPECT_EQ(*root().link("/usr/lib/libcuda.so"), "libcuda.so.1");
    ASSERT_TRUE(root().put_symlink("/usr/lib/libcuda.so", "other").ok());
    EXPECT_EQ(*root().link("/usr/lib/libcuda.so"), "other");
    EXPECT_THAT(*root().list("/usr/lib"), ElementsAre("libcuda.so"));
  });
}

TEST_F(RootTest, WhatAKilledRunLeftIsSweptAtTheNext) {
  const std::string old = "image/etc/.gantry-0123456789abcdef";
  const std::string link = "image/etc/.gantry-00000000000000aa";
  tree_.file(old, "half").link(link, "/x").file("image/etc/.gantry-00000000000000bb", "fresh");
  tree_.file("image/etc/.gantry-notes", "the image's")
      .directory("image/etc/.gantry-00000000000000cc");
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  for (const auto& path : {old, link, std::string("image/etc/.gantry-notes")}) {
    ASSERT_EQ(::utimensat(AT_FDCWD, tree_.path(path).c_str(), long_ago, AT_SYMLINK_NOFOLLOW), 0);
  }
  ASSERT_TRUE(root().put_file("/etc/ld.so.cache", "ours").ok());
  // Another run may be at work on a fresh one.
  EXPECT_THAT(*root().list("/etc"),
              ElementsAre(".gantry-00000000000000bb", ".gantry-00000000000000cc", ".gantry-notes",
                          "ld.so.cache"));
}

TEST_F(RootTest, RefusesNamesThatNameNothing) {
  for (const auto* path : {"/", "/etc/", "/etc/..", "/etc/.", ""}) {
    EXPECT_EQ(root().put_file(path, "x").error().code(), Errc::Invalid) << path;
  }
  EXPECT_FALSE(root().put_symlink("/etc/link", "").ok());
}

// CVE-2025-23359, CVE-2026-24260: a directory and a link to the host exchanged in a loop while we
// write. Every write ends inside the image.
TEST_F(RootTest, AnExchangedComponentNeverLeadsOut) {
  tree_.directory("image/good").link("image/evil", host("/etc")).directory("image" + host("/etc"));
  for (const bool without : {false, true}) {
    test::run_in_child(without ? "without openat2" : "with openat2", [&] {
      std::atomic<bool> stop{false};
      std::thread attacker([&] {
        const auto good = tree_.path("image/good");
        const auto evil = tree_.path("image/evil");
        while (!stop) {
          ::syscall(SYS_renameat2, AT_FDCWD, good.c_str(), AT_FDCWD, evil.c_str(), RENAME_EXCHANGE);
        }
      });
      if (without) test::block_syscalls({SYS_openat2}, ENOSYS);
      for (int i = 0; i < 400; ++i) {
        (void)root().put_file("/good/ld.so.cache", "ours").ok();
        (void)root().put_symlink("/good/libcuda.so", "libcuda.so.1").ok();
        (void)root().make_directories("/good/new").ok();
      }
      stop = true;
      attacker.join();
    });
    EXPECT_THAT(*tree_.host().list("/host/etc"), ElementsAre("ld.so.cache"));
    EXPECT_EQ(read("/host/etc/ld.so.cache"), "the host's");
  }
}

}  // namespace
}  // namespace gantry::rootfs
