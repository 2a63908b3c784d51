// SPDX-License-Identifier: Apache-2.0
#include "doctor/archive/collect.hpp"

#include "support/tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace gantry::doctor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

std::map<std::string, std::string> names(const CollectedFiles& collected) {
  std::map<std::string, std::string> found;
  for (const auto& file : collected.files) found[file.name] = file.content;
  return found;
}

TEST(Collect, TakesConfigurationStateAndLogs) {
  test::Tree tree;
  tree.file("etc/containerd/config.toml", "version = 2\n")
      .file("etc/containerd/conf.d/nvidia.toml", "x = 1\n")
      .file("run/cdi/nvidia.yaml", "kind: nvidia.com/gpu\n")
      .link("var/run", "/run")
      .file("run/gantry/grants/pod/main/grant.json", "{}")
      .file("var/lib/gantry/ledger", "one\n")
      .file("proc/driver/nvidia/gpus/0000:3b:00.0/information", "Model: H200\n");
  const auto found = names(collect_files(tree.host()));
  EXPECT_EQ(found.at("etc/containerd/config.toml"), "version = 2\n");
  for (const char* name : {"etc/containerd/conf.d/nvidia.toml", "var/run/cdi/nvidia.yaml",
                           "run/gantry/grants/pod/main/grant.json", "var/lib/gantry/ledger",
                           "proc/driver/nvidia/gpus/0000:3b:00.0/information"}) {
    EXPECT_THAT(found, Contains(Key(name)));
  }
}

TEST(Collect, TakesNoSecret) {
  test::Tree tree;
  tree.file("etc/kubernetes/admin.conf", "token: abc\n")
      .file("var/lib/kubelet/kubeconfig", "token: abc\n")
      .file("var/lib/kubelet/pki/kubelet.key", "-----BEGIN PRIVATE KEY-----\n")
      .file("etc/docker/key.json", "{}")
      .file("etc/containerd/config.toml", "password = \"hunter2\"\n");
  const auto collected = collect_files(tree.host());
  ASSERT_EQ(collected.files.size(), 1U);
  EXPECT_EQ(collected.files[0].content, "password = \"[removed]\"\n");
}

TEST(Collect, TakesTheEndOfALongLogAndNothingThatIsNoFile) {
  test::Tree tree;
  tree.file("var/log/fabricmanager.log", std::string(kMostFileBytes, 'a') + "the end\n");
  tree.directory("run/gantry");
  ASSERT_EQ(::mkfifo(tree.path("run/gantry/x.log").c_str(), 0600), 0);
  tree.link("run/gantry/y.log", "/dev/zero");
  const auto collected = collect_files(tree.host());
  ASSERT_EQ(collected.files.size(), 1U);
  EXPECT_EQ(collected.files[0].content.size(), kMostFileBytes);
  EXPECT_TRUE(collected.files[0].content.ends_with("the end\n"));
  EXPECT_THAT(collected.notes, Contains(HasSubstr("only the last 1024 of 1024 KiB")));
}

TEST(Collect, IsBounded) {
  test::Tree tree;
  for (int i = 0; i < 40; ++i) {
    tree.file("var/log/nvidia-" + std::to_string(i) + ".log", std::string(kMostFileBytes, 'a'));
  }
  const auto collected = collect_files(tree.host());
  EXPECT_EQ(collected.files.size(), kMaxArchiveBytes / kMostFileBytes);
  EXPECT_THAT(collected.notes, Contains(HasSubstr("left out, the report is large enough")));
}

TEST(Collect, SaysWhatOnlyRootMayRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  test::Tree tree;
  tree.file("var/lib/gantry/ledger", "one\n");
  ASSERT_EQ(::chmod(tree.path("var/lib/gantry/ledger").c_str(), 0), 0);
  const auto collected = collect_files(tree.host());
  EXPECT_TRUE(collected.denied);
  EXPECT_THAT(collected.notes, Contains("/var/lib/gantry/ledger: only root may read it"));
}

}  // namespace
}  // namespace gantry::doctor
