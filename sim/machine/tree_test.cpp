// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/tree.hpp"

#include "base/sys/child.hpp"
#include "sim/machine/image.hpp"
#include "support/machine.hpp"
#include "support/tree.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gantry::sim {
namespace {

using ::testing::HasSubstr;

std::string value(const sys::Host& host, std::string_view path) {
  const auto text = host.read_value(path);
  return text ? *text : "(absent)";
}

TEST(Create, EveryMachineBuilds) {
  for (const auto& entry : machine_catalog()) {
    SCOPED_TRACE(entry.name);
    const test::Machine machine(entry.name);
    EXPECT_EQ(read_marker(machine.root())->machine, entry.name);
  }
}

TEST(Create, AUserWhoIsNotRootCanLookEverywhere) {
  const test::Machine machine("h200x8");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(machine.root())) {
    struct stat st {};
    ASSERT_EQ(::lstat(entry.path().c_str(), &st), 0);
    if (!S_ISDIR(st.st_mode)) continue;
    EXPECT_EQ(st.st_mode & 0777U, 0755U) << entry.path();
  }
}

TEST(Create, RefusesADirectoryWithOtherFiles) {
  const test::Tree tree;
  test::Tree somebody;
  somebody.file("precious", "data");
  const auto created = create(*load_machine("h200"),
                              {.root = somebody.root(), .existing = ExistingTree::ReplaceOurs});
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().code(), Errc::Exists);
  EXPECT_EQ(*somebody.host().read("/precious"), "data");
}

TEST(Create, ReplacesItsOwnTreeOnlyWhenAsked) {
  test::Tree tree;
  const auto root = tree.path("m");
  ASSERT_TRUE(create(*load_machine("h200"), {.root = root, .nodes = DeviceNodes::Table}).ok());
  const auto again = create(*load_machine("h200x8"), {.root = root, .nodes = DeviceNodes::Table});
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().text(), HasSubstr("--force replaces it"));
  EXPECT_EQ(read_marker(root)->machine, "h200");
  const auto forced =
      create(*load_machine("h200x8"),
             {.root = root, .nodes = DeviceNodes::Table, .existing = ExistingTree::ReplaceOurs});
  ASSERT_TRUE(forced.ok()) << forced.error().text();
  EXPECT_EQ(read_marker(root)->machine, "h200x8");
  EXPECT_THAT(*tree.host().list("/"), ::testing::ElementsAre("m"));  // no temporary file is left
}

TEST(Create, AFileOfTheMachineCannotLeaveTheTree) {
  test::Tree tree;
  const auto machine = parse_machine(
      "gpus: []\ndriver: {version: '1', library_directory: /usr/lib}\nfiles: {/../../escaped: x}\n",
      "m.yaml");
  ASSERT_TRUE(machine.ok());
  const auto created = create(*machine, {.root = tree.path("a/b"), .nodes = DeviceNodes::Table});
  ASSERT_FALSE(created.ok());
  EXPECT_THAT(created.error().text(), HasSubstr("not an absolute path without .."));
  EXPECT_FALSE(tree.host().exists("/escaped"));
}

TEST(Create, ALinkOfTheMachineIsNotWrittenThrough) {
  test::Tree tree;
  tree.directory("outside");
  const auto machine = parse_machine(
      "gpus: []\nmerged_usr: false\ndriver: {version: '1', library_directory: /usr/lib}\nlinks: "
      "{/data: " +
          tree.path("outside") + "}\nfiles: {/data/x: y}\n",
      "m.yaml");
  ASSERT_TRUE(machine.ok()) << machine.error().text();
  ASSERT_TRUE(create(*machine, {.root = tree.path("m"), .nodes = DeviceNodes::Table}).ok());
  EXPECT_FALSE(tree.host().exists("/outside/x"));
}

TEST(Create, BothLibrariesCarryTheMachine) {
  const test::Machine machine("h200x8");
  const auto marker = *read_marker(machine.root());
  for (const auto& path : {marker.cuda_library, marker.nvml_library}) {
    const auto file = machine.host().read(path, 256U << 20U);
    ASSERT_TRUE(file.ok()) << file.error().text();
    const auto image = find_image(*file);
    ASSERT_TRUE(image.ok()) << image.error().text();
    EXPECT_STREQ((*image)->machine.name, "h200x8");
    EXPECT_EQ((*image)->machine.gpu_count, 8U);
    EXPECT_EQ((*image)->machine.gpu[3].nvlink_count, 18U);
    EXPECT_EQ((*image)->machine.topology[0][1], 40);  // same socket
    EXPECT_EQ((*image)->machine.topology[0][4], 50);  // other socket
  }
}

TEST(H200x8, LooksLikeTwoSockets) {
  const test::Machine machine("h200x8");
  const auto host = machine.host();
  EXPECT_EQ(value(host, "/sys/bus/pci/devices/0000:18:00.0/numa_node"), "0");
  EXPECT_EQ(value(host, "/sys/bus/pci/devices/0000:db:00.0/numa_node"), "1");
  EXPECT_EQ(value(host, "/sys/bus/pci/devices/0000:db:00.0/local_cpulist"), "56-111,168-223");
  EXPECT_EQ(*host.resolve("/sys/bus/pci/devices/0000:18:00.0"),
            "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0");
  EXPECT_EQ(*host.resolve("/sys/bus/pci/devices/0000:18:00.0/driver"),
            "/sys/bus/pci/drivers/nvidia");
  EXPECT_EQ(*host.resolve("/sys/bus/pci/devices/0000:18:00.0/iommu_group"),
            "/sys/kernel/iommu_groups/23");
  EXPECT_EQ(value(host, "/sys/bus/pci/devices/0000:05:00.0/class"), "0x068000");
  EXPECT_EQ(host.info("/run/nvidia-fabricmanager/socket")->kind, sys::FileKind::Socket);
  EXPECT_EQ(host.device("/dev/nvidia-nvswitch3")->minor, 3U);
  EXPECT_EQ(host.device("/dev/nvidia7")->minor, 7U);
}

TEST(LdCache, IsReadByTheSystemsOwnLdconfig) {
  const test::Machine machine("h200x8");
  const auto listed = sys::run_command(
      {"/sbin/ldconfig", "-p", "-C", machine.path("/etc/ld.so.cache")}, std::chrono::seconds(10));
  ASSERT_TRUE(listed.ok()) << listed.error().text();
  EXPECT_EQ(listed->status, 0) << listed->output;
  EXPECT_THAT(listed->output,
              HasSubstr("libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1\n"));
}

}  // namespace
}  // namespace gantry::sim
