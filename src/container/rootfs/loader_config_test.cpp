// SPDX-License-Identifier: Apache-2.0
#include "container/rootfs/loader_config.hpp"

#include "gpu/loader/ld_cache.hpp"
#include "support/blocked_syscalls.hpp"
#include "support/elf_image.hpp"
#include "support/tree.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <filesystem>

namespace gantry::rootfs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::vector<model::LibraryEdit> our_libraries{
    {.name = "libcuda.so.1", .path = "/usr/local/nvidia/lib64/libcuda.so.1"}};

class LoaderFindTest : public ::testing::Test {
 protected:
  LoaderFindTest() {
    tree_.file("lib64/ld-linux-x86-64.so.2", "loader")
        .file("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
        .file("etc/ld.so.cache",
              *loader::serialize_ld_cache(
                  {.entries = {{.name = "libc.so.6", .path = "/lib/libc.so.6"}}}));
  }
  Root root() const { return *Root::at(tree_.root()); }
  Result<LoaderResult> find(const LoaderOptions& options = {}) const {
    return configure_loader(root(), our_libraries, options);
  }
  std::string content(std::string_view path) const {
    return root().read(path, 1 << 20).value_or("none");
  }
  // Paths by name, as the loader would try them.
  std::vector<std::string> found(std::string_view name) const {
    std::vector<std::string> paths;
    const auto cache = loader::parse_ld_cache(content(kLoaderCache));
    for (const auto& entry : cache->entries) {
      if (entry.name == name) paths.push_back(entry.path);
    }
    return paths;
  }
  test::Tree tree_;
};

TEST_F(LoaderFindTest, MergesTheCacheAndTellsLdconfig) {
  const auto outcome = find();
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_TRUE(outcome->loaders.glibc && outcome->had_cache && !outcome->loaders.musl);
  EXPECT_THAT(outcome->notes, IsEmpty());
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre(our_libraries[0].path));
  EXPECT_THAT(found("libc.so.6"), ElementsAre("/lib/libc.so.6"));
  EXPECT_THAT(content(kGantryConf), HasSubstr("\n/usr/local/nvidia/lib64\n"));
  EXPECT_EQ(content(kLoaderConf), "include /etc/ld.so.conf.d/*.conf\n");
}

TEST_F(LoaderFindTest, ASecondStartChangesNothing) {
  ASSERT_TRUE(find().ok());
  const auto before = std::filesystem::last_write_time(tree_.path("etc/ld.so.cache"));
  const auto bytes = content(kLoaderCache);
  ASSERT_TRUE(find().ok());
  EXPECT_EQ(content(kLoaderCache), bytes);
  EXPECT_EQ(std::filesystem::last_write_time(tree_.path("etc/ld.so.cache")), before);
}

TEST_F(LoaderFindTest, ALaterDriverForgetsTheEarlierOnesNames) {
  const std::vector<model::LibraryEdit> old{
      {.name = "libcuda.so.570.1", .path = "/usr/local/nvidia/lib64/libcuda.so.570.1"}};
  ASSERT_TRUE(configure_loader(root(), old).ok());
  ASSERT_TRUE(find().ok());
  EXPECT_THAT(found("libcuda.so.570.1"), IsEmpty());
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre(our_libraries[0].path));
}

TEST_F(LoaderFindTest, WithoutCacheOrConfBothAreMade) {
  tree_.remove("etc");
  const auto outcome = find();
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_FALSE(outcome->had_cache);
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre(our_libraries[0].path));
  EXPECT_EQ(content(kLoaderConf), "include /etc/ld.so.conf.d/*.conf\n");
}

TEST_F(LoaderFindTest, AConfWithoutIncludeGetsOneAndKeepsItsLines) {
  tree_.file("etc/ld.so.conf", "/opt/lib");
  ASSERT_TRUE(find().ok());
  EXPECT_EQ(content(kLoaderConf), "/opt/lib\ninclude /etc/ld.so.conf.d/*.conf\n");
  ASSERT_TRUE(find().ok());
  EXPECT_EQ(content(kLoaderConf), "/opt/lib\ninclude /etc/ld.so.conf.d/*.conf\n");
}

TEST_F(LoaderFindTest, ALinkInTheCachesPlaceIsReadInsideAndReplaced) {
  test::Tree host;
  host.file("cache", "the host's");
  tree_.remove("etc/ld.so.cache").link("etc/ld.so.cache", host.path("cache"));
  ASSERT_TRUE(find().ok());
  EXPECT_EQ(*host.host().read("/cache"), "the host's");
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre(our_libraries[0].path));
  EXPECT_EQ(root().link_info(kLoaderCache)->kind, sys::FileKind::Regular);
}

TEST_F(LoaderFindTest, AFifoInTheCachesPlaceIsReplacedWithAWord) {
  tree_.remove("etc/ld.so.cache");
  ASSERT_EQ(::mkfifo(tree_.path("etc/ld.so.cache").c_str(), 0644), 0);
  const auto outcome = find();
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_THAT(outcome->notes, ElementsAre(HasSubstr("has been replaced")));
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre(our_libraries[0].path));
}

TEST_F(LoaderFindTest, WhatCannotBeChangedIsUnsupportedAndLeftAlone) {
  const auto expect_unsupported = [&](const char* what) {
    const auto outcome = find();
    ASSERT_FALSE(outcome.ok()) << what;
    EXPECT_EQ(outcome.error().code(), Errc::Unsupported) << what << ": " << outcome.error().text();
    EXPECT_FALSE(root().info(kGantryConf).ok()) << what;
  };
  auto damaged = content(kLoaderCache);
  damaged.resize(60);
  tree_.file("etc/ld.so.cache", damaged);
  expect_unsupported("damaged");
  ASSERT_EQ(::truncate(tree_.path("etc/ld.so.cache").c_str(), 1LL << 40), 0);
  expect_unsupported("huge");
  tree_.remove("etc/ld.so.cache").directory("etc/ld.so.cache");
  expect_unsupported("directory");
}

TEST_F(LoaderFindTest, ADamagedCacheIsReplacedOnRequest) {
  auto damaged = content(kLoaderCache);
  damaged.resize(60);
  tree_.file("etc/ld.so.cache", damaged)
      .file("etc/ld.so.conf.d/opt.conf", "# mine\n/opt/lib\n")
      .file("opt/lib/libmine.so.2", test::elf_image({.soname = "libmine.so.2"}));
  const auto outcome = find({.if_damaged = DamagedCachePolicy::Replace});
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_THAT(outcome->notes, ElementsAre(HasSubstr("is damaged")));
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre(our_libraries[0].path));
  EXPECT_THAT(found("libmine.so.2"), ElementsAre("/opt/lib/libmine.so.2"));
}

TEST_F(LoaderFindTest, AReadOnlyRootIsUnsupported) {
  test::run_in_child("on a read-only root", [&] {
    if (::unshare(CLONE_NEWNS) != 0) return;  // no root, no way to make one
    const auto* path = tree_.root().c_str();
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(::mount(path, path, nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(::mount(nullptr, path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
    const auto outcome = find();
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code(), Errc::Unsupported);
    EXPECT_THAT(outcome.error().text(), HasSubstr("Read-only"));
  });
}

TEST_F(LoaderFindTest, AHookMountsAMergedCacheWhereItCannotWrite) {
  tree_.directory("run");
  test::run_in_child("on a read-only root", [&] {
    if (::unshare(CLONE_NEWNS) != 0) return;
    const auto* path = tree_.root().c_str();
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(::mount(path, path, nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(::mount(nullptr, path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
    const auto outcome = find({.if_read_only = ReadOnlyPolicy::MountOver});
    ASSERT_TRUE(outcome.ok()) << outcome.error().text();
    EXPECT_THAT(outcome->notes, ElementsAre(HasSubstr("mounted over")));
    EXPECT_THAT(found("libcuda.so.1"), ElementsAre(our_libraries[0].path));
    EXPECT_THAT(found("libc.so.6"), ElementsAre("/lib/libc.so.6"));
  });
  EXPECT_THAT(found("libcuda.so.1"), IsEmpty());
}

TEST_F(LoaderFindTest, InASharedDirectoryOnlyNewLibrariesAreOurs) {
  const std::string lib = "/usr/lib/x86_64-linux-gnu";
  tree_.file("etc/ld.so.cache",
             *loader::serialize_ld_cache(
                 {.entries = {{.name = "libz.so.1", .path = "/usr/local/lib/libz.so.1"},
                              {.name = "libz.so.1", .path = lib + "/libz.so.1"}}}));
  const std::vector<model::LibraryEdit> scanned{
      {.name = "libz.so.1", .path = lib + "/libz.so.1"},
      {.name = "libcuda.so.1", .path = lib + "/libcuda.so.1"}};
  ASSERT_TRUE(configure_loader(root(), scanned, {.directories = DirectoryOwner::Shared}).ok());
  EXPECT_THAT(found("libz.so.1"), ElementsAre("/usr/local/lib/libz.so.1", lib + "/libz.so.1"));
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre(lib + "/libcuda.so.1"));
  EXPECT_THAT(content(kGantryConf), Not(HasSubstr(lib)));  // ldconfig looks there by itself
}

TEST_F(LoaderFindTest, PreferredDirectoriesComeBeforeOurs) {
  tree_.file("opt/first/libcuda.so.1", test::elf_image({.soname = "libcuda.so.1"}));
  ASSERT_TRUE(find({.preferred = {"/opt/first", "/opt/none"}}).ok());
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre("/opt/first/libcuda.so.1", our_libraries[0].path));
  EXPECT_THAT(content(kGantryConf), HasSubstr("\n/opt/first\n/usr/local/nvidia/lib64\n"));
}

TEST_F(LoaderFindTest, ForwardCompatibilityGoesInFront) {
  tree_.file("usr/local/cuda/compat/libcuda.so.575.57.08",
             test::elf_image({.soname = "libcuda.so.1"}));
  const auto outcome = find({.host = {.driver = "570.86.15"}});
  ASSERT_TRUE(outcome.ok());
  ASSERT_TRUE(outcome->compat && outcome->compat->use) << outcome->compat->why;
  EXPECT_THAT(found("libcuda.so.1"),
              ElementsAre("/usr/local/cuda/compat/libcuda.so.575.57.08", our_libraries[0].path));
  EXPECT_THAT(content(kGantryConf),
              HasSubstr("\n/usr/local/cuda/compat\n/usr/local/nvidia/lib64\n"));
  // A newer driver: the image's library is not in front any more, on the same root.
  ASSERT_TRUE(find({.host = {.driver = "580.65.06"}}).ok());
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre(our_libraries[0].path));
  EXPECT_THAT(content(kGantryConf), Not(HasSubstr("compat\n/")));
}

TEST_F(LoaderFindTest, MuslIsRecognisedAndGetsADirectory) {
  tree_.remove("lib64").remove("etc").file("lib/ld-musl-x86_64.so.1", "loader");
  auto outcome = find();
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->loaders.musl && !outcome->loaders.glibc);
  EXPECT_THAT(outcome->notes, ElementsAre(HasSubstr("musl")));
  EXPECT_EQ(content("/etc/ld-musl-x86_64.path"),
            "/lib:/usr/local/lib:/usr/lib:/usr/local/nvidia/lib64\n");
  EXPECT_FALSE(root().info(kLoaderCache).ok());
  ASSERT_TRUE(find().ok());
  EXPECT_EQ(content("/etc/ld-musl-x86_64.path"),
            "/lib:/usr/local/lib:/usr/lib:/usr/local/nvidia/lib64\n");
  tree_.file("etc/ld-musl-x86_64.path", "/lib\n/opt\n");
  ASSERT_TRUE(find().ok());
  EXPECT_EQ(content("/etc/ld-musl-x86_64.path"), "/lib\n/opt\n/usr/local/nvidia/lib64\n");
}

TEST_F(LoaderFindTest, BothLoadersAreServedButMuslsListIsNotGuessed) {
  tree_.file("lib/ld-musl-x86_64.so.1", "loader");
  ASSERT_TRUE(find().ok());
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre(our_libraries[0].path));
  EXPECT_FALSE(root().info("/etc/ld-musl-x86_64.path").ok());
}

TEST_F(LoaderFindTest, AnImageWithoutALoaderIsLeftAlone) {
  tree_.remove("lib64").remove("etc");
  const auto outcome = find();
  ASSERT_TRUE(outcome.ok());
  EXPECT_THAT(outcome->notes, ElementsAre(HasSubstr("no dynamic loader")));
  EXPECT_FALSE(root().info("/etc").ok());
}

}  // namespace
}  // namespace gantry::rootfs
