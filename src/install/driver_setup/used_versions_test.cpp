// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/used_versions.hpp"

#include "install/driver_setup/machine_for_test.hpp"
#include "install/driver_setup/status.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_setup {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kName = "460.56-0123456789ab";
constexpr const char* kOther = "580.159.04-0123456789ab-open";

void mount(test::Tree& tree, unsigned pid, std::string_view root) {
  tree.file(fmt::format("proc/{}/comm", pid), "python3\n");
  tree.file(fmt::format("proc/{}/mountinfo", pid),
            fmt::format("23 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                        "99 23 8:1 {} /usr/lib64 ro - ext4 /dev/sda1 rw\n",
                        root));
}

TEST(VersionsInUse, AreThoseThatAProcessHasMounted) {
  test::Tree tree;
  mount(tree, 7, fmt::format("/usr/local/nvidia/.versions/{}/lib64", kName));
  mount(tree, 8, fmt::format("/usr/local/nvidia/.versions/{}-open/lib64", kName));  // another name
  const auto used = versions_in_use(tree.host(), {kName, kOther});
  ASSERT_EQ(used.size(), 1U);
  EXPECT_EQ(used.at(kName), (VersionUser{.pid = 7, .command = "python3"}));
  mount(tree, 9, fmt::format("/nvidia/.versions/{}//deleted", kOther));
  EXPECT_EQ(versions_in_use(tree.host(), {kName, kOther}).size(), 2U);
}

TEST(VersionsInUse, ReadEachMountNamespaceOnce) {
  test::Tree tree;
  tree.directory("proc/7").directory("proc/8");
  for (const auto* pid : {"7", "8"})
    tree.link(fmt::format("proc/{}/ns/mnt", pid), "mnt:[4026531841]");
  mount(tree, 7, "/srv");
  mount(tree, 8, fmt::format("/usr/local/nvidia/.versions/{}", kName));  // cannot be: the same one
  EXPECT_THAT(versions_in_use(tree.host(), {kName}), IsEmpty());
}

TEST(VersionsInUse, AreAllIfThatCannotBeKnown) {
  test::Tree tree;
  mount(tree, 7, std::string(std::size_t{5} << 20, 'x'));
  const auto used = versions_in_use(tree.host(), {kName});
  ASSERT_EQ(used.size(), 1U);
  EXPECT_EQ(used.at(kName).pid, 0U);
}

// A container of the driver before the last two: its lib64 must not become empty.
TEST(VersionsInUse, StayOnTheDiskUntilNothingHasThemMounted) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  const auto first = machine.current();
  mount(machine.tree(), 4711, fmt::format("/usr/local/nvidia/{}/lib64", first));
  machine.tree().file("proc/4711/cmdline", "python3").directory("proc/4711/fd");
  expect_ok(machine.install("535.261.03"));
  const auto third = machine.install(kNewDriver);
  expect_ok(third);
  EXPECT_TRUE(machine.host().exists("/usr/local/nvidia/" + first + "/lib64"));
  EXPECT_THAT(third->notes, Contains(HasSubstr("process 4711 (python3) has its files mounted")));
  const auto status = read_status(machine.host());
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(to_text(*status), HasSubstr("in use: process 4711 (python3)"));

  machine.tree().remove("proc/4711");
  expect_ok(machine.install(kOldDriver));
  EXPECT_TRUE(machine.host().exists("/usr/local/nvidia/" + first));  // current again
  expect_ok(machine.install(kNewDriver));
  const auto left = machine.host().list("/usr/local/nvidia/.versions").value_or({});
  EXPECT_EQ(left.size(), 2U);
}

}  // namespace
}  // namespace gantry::driver_setup
