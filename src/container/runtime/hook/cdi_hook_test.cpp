// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/hook/cdi_hook.hpp"

#include "container/rootfs/loader_config.hpp"
#include "gpu/loader/ld_cache.hpp"
#include "support/blocked_syscalls.hpp"
#include "support/elf_image.hpp"
#include "support/tree.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

namespace gantry::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CdiHookTest : public ::testing::Test {
 protected:
  CdiHookTest() {
    tree_.directory("bundle/rootfs/etc")
        .file("bundle/config.json", "{\"root\":{\"path\":\"rootfs\"}}")
        .file("bundle/rootfs/lib64/ld-linux-x86-64.so.2", "loader")
        .file("host/proc/driver/nvidia/params", "EnableMSI: 1\nModifyDeviceFiles: 1\n");
    state("");
  }
  // The state as runc gives it, or crun with its `root`.
  void state(const std::string& root) {
    tree_.file("state.json",
               fmt::format("{{\"id\":\"x\",\"pid\":1,\"bundle\":\"{}\"{}}}", tree_.path("bundle"),
                           root.empty() ? "" : fmt::format(",\"root\":\"{}\"", root)));
  }
  int run(std::vector<std::string> words) {
    const auto spec = "--container-spec=" + tree_.path("state.json");
    const auto host = "--root=" + tree_.path("host");
    std::vector<std::string_view> all(words.begin(), words.end());
    all.push_back(spec);
    all.push_back(host);
    ::testing::internal::CaptureStderr();
    const int status = run_cdi_hook(all);
    said_ = ::testing::internal::GetCapturedStderr();
    return status;
  }
  rootfs::Root root() const { return *rootfs::Root::at(tree_.path("bundle/rootfs")); }
  std::string content(std::string_view path) const {
    return root().read(path, 1 << 20).value_or("none");
  }
  std::vector<std::string> found(std::string_view name) const {
    std::vector<std::string> paths;
    const auto cache = loader::parse_ld_cache(content(rootfs::kLoaderCache));
    if (!cache.ok()) return paths;
    for (const auto& entry : cache->entries) {
      if (entry.name == name) paths.push_back(entry.path);
    }
    return paths;
  }
  test::Tree tree_;
  std::string said_;
};

TEST_F(CdiHookTest, AnUnknownHookIsAWarningAndNoFailure) {
  EXPECT_EQ(run({"tomorrows-hook", "--with", "flags"}), 0);
  EXPECT_THAT(said_, HasSubstr("level=warning msg=\"Unsupported CDI hook: tomorrows-hook\""));
  EXPECT_EQ(run({}), 0);
  EXPECT_THAT(said_, HasSubstr("No CDI hook specified"));
}

TEST_F(CdiHookTest, AnUnknownFlagOfAKnownHookIsAnError) {
  EXPECT_EQ(run({"create-symlinks", "--lnik", "a::b"}), 1);
  EXPECT_THAT(said_, HasSubstr("no flag --lnik"));
  EXPECT_EQ(run({"--debug", "--quiet", "noop"}), 0);
}

TEST_F(CdiHookTest, TheStateMustBeOne) {
  for (const auto* text : {"", "{", "{\"id\":\"x\"}", "[]"}) {
    tree_.file("state.json", text);
    EXPECT_EQ(run({"create-symlinks", "--link", "a::/b"}), 1) << text;
    EXPECT_THAT(said_, HasSubstr("state"));
  }
  tree_.file("state.json", std::string(2 << 20, ' '));
  EXPECT_EQ(run({"create-symlinks", "--link", "a::/b"}), 1);
  EXPECT_EQ(run({"create-symlinks", "--container-spec", "relative", "--link", "a::/b"}), 1);
}

TEST_F(CdiHookTest, TheRootOfTheStateWinsOverTheConfiguration) {
  tree_.directory("other");
  state(tree_.path("other"));
  ASSERT_EQ(run({"create-symlinks", "--link", "target::/link"}), 0) << said_;
  EXPECT_TRUE(std::filesystem::is_symlink(tree_.path("other/link")));
  state("");
  ASSERT_EQ(run({"create-symlinks", "--link", "target::/link"}), 0) << said_;
  EXPECT_EQ(*root().link("/link"), "target");
}

TEST_F(CdiHookTest, TheMachinesOwnRootIsRefused) {
  state("/");
  EXPECT_EQ(run({"create-symlinks", "--link", "target::/gantry-must-not-be-here"}), 1);
  EXPECT_THAT(said_, HasSubstr("machine's own root"));
}

TEST_F(CdiHookTest, CreateSymlinksStaysInTheRoot) {
  // CVE-2024-0134, CVE-2026-24260
  tree_.directory("outside").link("bundle/rootfs/usr", tree_.path("outside"));
  tree_.directory("bundle/rootfs" + tree_.path("outside"));
  EXPECT_EQ(run({"create-symlinks", "--link", "libcuda.so.1::/usr/lib/libcuda.so", "--link=a::/b"}),
            0)
      << said_;
  EXPECT_THAT(*tree_.host().list("/outside"), IsEmpty());
  EXPECT_EQ(*root().link("/usr/lib/libcuda.so"), "libcuda.so.1");
  EXPECT_EQ(*root().link("/b"), "a");
  for (const auto* bad : {"x", "::/b", "a::", ""}) {
    EXPECT_EQ(run({"create-symlinks", "--link", bad}), 1) << bad;
    EXPECT_THAT(said_, HasSubstr("TARGET::LINK"));
  }
}

TEST_F(CdiHookTest, UpdateLdcacheFindsWhatIsInTheFolders) {
  tree_
      .file("bundle/rootfs/usr/local/nvidia/lib64/libcuda.so.580.1",
            test::elf_image({.soname = "libcuda.so.1"}))
      .link("bundle/rootfs/usr/local/nvidia/lib64/libcuda.so.1", "libcuda.so.580.1");
  ASSERT_EQ(run({"update-ldcache", "--ldconfig-path", "/sbin/ldconfig", "--folder",
                 "/usr/local/nvidia/lib64", "--folder", "/none"}),
            0)
      << said_;
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre("/usr/local/nvidia/lib64/libcuda.so.1"));
  EXPECT_THAT(content(rootfs::kGantryConf), HasSubstr("/usr/local/nvidia/lib64\n"));
  EXPECT_THAT(said_, HasSubstr("/none"));
}

TEST_F(CdiHookTest, UpdateLdcacheNeverWritesThroughLinksToTheHost) {
  // CVE-2025-23267
  tree_.file("outside/ld.so.cache", "host").file("outside/conf.d/host.conf", "host");
  tree_.link("bundle/rootfs/etc/ld.so.cache", tree_.path("outside/ld.so.cache"))
      .link("bundle/rootfs/etc/ld.so.conf.d", tree_.path("outside/conf.d"))
      .link("bundle/rootfs/etc/ld.so.conf", tree_.path("outside/ld.so.conf"))
      .file("bundle/rootfs/d/liba.so.1", test::elf_image({.soname = "liba.so.1"}));
  (void)run({"update-ldcache", "--folder", "/d"});
  EXPECT_EQ(*tree_.host().read("/outside/ld.so.cache"), "host");
  EXPECT_THAT(*tree_.host().list("/outside/conf.d"), ElementsAre("host.conf"));
  EXPECT_FALSE(tree_.host().exists("/outside/ld.so.conf"));
}

TEST_F(CdiHookTest, EnableCudaCompatThenUpdateLdcachePutsTheImagesLibcudaFirst) {
  tree_
      .file("bundle/rootfs/usr/local/cuda/compat/libcuda.so.590.1",
            test::elf_image({.soname = "libcuda.so.1"}))
      .file("bundle/rootfs/usr/lib64/libcuda.so.1", test::elf_image({.soname = "libcuda.so.1"}));
  ASSERT_EQ(run({"enable-cuda-compat", "--host-driver-version=580.65.06"}), 0) << said_;
  EXPECT_EQ(content("/etc/ld.so.conf.d/00-compat-gantry.conf"), "/usr/local/cuda/compat\n");
  ASSERT_EQ(run({"update-ldcache", "--folder=/usr/lib64"}), 0) << said_;
  EXPECT_THAT(found("libcuda.so.1"),
              ElementsAre("/usr/local/cuda/compat/libcuda.so.590.1", "/usr/lib64/libcuda.so.1"));
  // With a newer driver the decision is taken back.
  ASSERT_EQ(run({"enable-cuda-compat", "--host-driver-version=595.10"}), 0);
  EXPECT_EQ(content("/etc/ld.so.conf.d/00-compat-gantry.conf"), "none");
  ASSERT_EQ(run({"update-ldcache", "--folder=/usr/lib64"}), 0);
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre("/usr/lib64/libcuda.so.1"));
}

TEST_F(CdiHookTest, OneHookCanDoBoth) {
  tree_
      .file("bundle/rootfs/usr/local/cuda/compat/libcuda.so.590.1",
            test::elf_image({.soname = "libcuda.so.1"}))
      .file("bundle/rootfs/usr/local/nvidia/lib64/libcuda.so.1",
            test::elf_image({.soname = "libcuda.so.1"}));
  tree_.file("host/proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27\n");
  ASSERT_EQ(
      run({"update-ldcache", "--folder=/usr/local/nvidia/lib64", "--host-driver-version=running"}),
      0);
  EXPECT_THAT(found("libcuda.so.1"), ElementsAre("/usr/local/cuda/compat/libcuda.so.590.1",
                                                 "/usr/local/nvidia/lib64/libcuda.so.1"));
}

TEST_F(CdiHookTest, ChmodChangesWhatIsInsideAndForgivesWhatIsNot) {
  tree_.directory("bundle/rootfs/dev/dri")
      .directory("outside")
      .link("bundle/rootfs/link", tree_.path("outside"));
  ASSERT_EQ(::chmod(tree_.path("outside").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(tree_.path("bundle/rootfs/dev/dri").c_str(), 0700), 0);
  EXPECT_EQ(
      run({"chmod", "--mode", "755", "--path", "/dev/dri", "--path", "/none", "--path", "/link"}),
      0)
      << said_;
  EXPECT_EQ(root().info("/dev/dri")->mode, 0755U);
  EXPECT_EQ(tree_.host().info("/outside")->mode, 0700U);
  for (const auto* bad : {"", "4755", "rwx", "9"}) {
    EXPECT_EQ(run({"chmod", "--mode", bad, "--path", "/dev/dri"}), 1) << bad;
  }
}

TEST_F(CdiHookTest, DeviceFilesAreNotModifiedInTheContainer) {
  tree_.file("bundle/rootfs/proc/driver/nvidia/params", "EnableMSI: 1\nModifyDeviceFiles: 1\n")
      .directory("bundle/rootfs/run");
  test::run_in_child("in a mount namespace", [&] {
    if (::unshare(CLONE_NEWNS) != 0) return;
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(run({"disable-device-node-modification"}), 0) << said_;
    EXPECT_EQ(content("/proc/driver/nvidia/params"), "EnableMSI: 1\nModifyDeviceFiles: 0\n");
    EXPECT_THAT(said_, IsEmpty());
  });
  EXPECT_EQ(content("/proc/driver/nvidia/params"), "EnableMSI: 1\nModifyDeviceFiles: 1\n");
  tree_.remove("bundle/rootfs/proc");
  EXPECT_EQ(run({"disable-device-node-modification"}), 0);
}

TEST_F(CdiHookTest, TheFenceCoversEveryLibcudaOfTheImage) {
  tree_
      .file("bundle/config.json",
            "{\"root\":{\"path\":\"rootfs\"},\"process\":{\"env\":[\"LD_LIBRARY_PATH=/opt/"
            "mine:/usr/lib64\"]}}")
      .file("bundle/rootfs/usr/local/cuda-12.8/compat/libcuda.so.570.1", "compat")
      .link("bundle/rootfs/usr/local/cuda-12.8/compat/libcuda.so.1", "libcuda.so.570.1")
      .file("bundle/rootfs/opt/mine/libcuda.so.1", "mine")
      .file("bundle/rootfs/opt/mine/libnvidia-ml.so.1", "mine")
      .file("bundle/rootfs/usr/lib64/libcudart.so.12", "runtime")
      .link("bundle/rootfs/usr/lib64/libcuda.so.1", "/../../../ours/nvml")
      .file("ours/cuda", "fence")
      .file("ours/nvml", "fence of nvml");
  const std::vector<std::string> words{"fence", "--cuda", tree_.path("ours/cuda"), "--nvml",
                                       tree_.path("ours/nvml")};
  test::run_in_child("in a mount namespace", [&] {
    if (::unshare(CLONE_NEWNS) != 0) return;
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    for (int twice = 0; twice < 2; ++twice) {
      ASSERT_EQ(run(words), 0) << said_;
      EXPECT_EQ(content("/usr/local/cuda-12.8/compat/libcuda.so.1"), "fence");
      EXPECT_EQ(content("/opt/mine/libcuda.so.1"), "fence");
      EXPECT_EQ(content("/opt/mine/libnvidia-ml.so.1"), "fence of nvml");
      EXPECT_EQ(content("/usr/lib64/libcudart.so.12"), "runtime");
    }
  });
  EXPECT_EQ(content("/opt/mine/libcuda.so.1"), "mine");
}

TEST_F(CdiHookTest, WithoutTheFenceThereIsNoContainer) {
  EXPECT_EQ(run({"fence", "--cuda", "/no/such/fence", "--nvml", "/no/such/fence"}), 1);
  EXPECT_THAT(said_, HasSubstr("/no/such/fence"));
  EXPECT_EQ(run({"fence", "--cuda", "relative", "--nvml", "relative"}), 1);
}

TEST_F(CdiHookTest, TheApplicationProfileNamesTheContainersGpus) {
  tree_.directory("bundle/rootfs/dev")
      .file("bundle/rootfs/dev/nvidia7", "a file")
      .file("bundle/rootfs/dev/nvidiactl");
  for (const unsigned minor : {0U, 3U, 70U}) {
    const auto path = tree_.path("bundle/rootfs/dev/nvidia" + std::to_string(minor));
    if (::mknod(path.c_str(), S_IFCHR | 0600, makedev(195, minor)) != 0)
      GTEST_SKIP() << "needs root for mknod";
  }
  ASSERT_EQ(run({"update-application-profile"}), 0);
  EXPECT_EQ(
      content("/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf"),
      "{\"profiles\":[{\"name\":\"_container_\",\"settings\":[\"EGLVisibleDGPUDevices\",0x9]}],"
      "\"rules\":[{\"pattern\":[],\"profile\":\"_container_\"}]}");
  EXPECT_THAT(said_, HasSubstr("cannot name GPU 70"));
}

TEST_F(CdiHookTest, AReadOnlyEtcIsAWordAndNoFailure) {
  tree_.directory("bundle/rootfs/dev")
      .directory("bundle/rootfs/run")
      .directory("bundle/rootfs/etc/ld.so.conf.d");
  if (::mknod(tree_.path("bundle/rootfs/dev/nvidia0").c_str(), S_IFCHR | 0600, makedev(195, 0)) !=
      0) {
    GTEST_SKIP() << "needs root for mknod";
  }
  test::run_in_child("with a read-only /etc", [&] {
    if (::unshare(CLONE_NEWNS) != 0) return;
    const auto etc = tree_.path("bundle/rootfs/etc");
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(::mount(etc.c_str(), etc.c_str(), nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(::mount(nullptr, etc.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
    EXPECT_EQ(run({"update-application-profile"}), 0);
    EXPECT_THAT(said_, HasSubstr("Read-only"));
    EXPECT_EQ(run({"enable-cuda-compat", "--host-driver-version", "1.0"}), 0) << said_;
  });
}

}  // namespace
}  // namespace gantry::runtime
