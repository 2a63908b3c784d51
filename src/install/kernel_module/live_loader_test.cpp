// SPDX-License-Identifier: Apache-2.0
// Without the right to load modules, or without a kernel that has any, these tests see only that
// the calls come back with a sentence. tests/vm loads, refuses and unloads real modules.
#include "install/kernel_module/kernel_log_internal.hpp"
#include "install/kernel_module/module_image_for_test.hpp"
#include "install/kernel_module/module_loader.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::kernel_module {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A module of a kernel that does not exist: no kernel accepts it.
constexpr std::string_view kNoRelease = "0.0.0-gantry-test";

TEST(LiveLoader, ModuleThatNoKernelAcceptsIsAnError) {
  test::Tree tree;
  tree.file("gantry_test.ko", nvidia_module("gantry_test", kNoRelease, "1"))
      .file("proc/version", "Linux version 6.1.0 (a@b) (gcc (GCC) 12.2.0) #1\n");
  const auto machine = tree.host();
  const auto status = live_module_loader(machine)->load(machine, "/gantry_test.ko", "");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("module"));
}

TEST(LiveLoader, FileThatDoesNotExistIsNotFound) {
  test::Tree tree;
  const auto machine = tree.host();
  const auto status = live_module_loader(machine)->load(machine, "/none.ko", "");
  EXPECT_EQ(status.error().code(), Errc::NotFound);
  EXPECT_THAT(status.error().text(), HasSubstr("none.ko"));
}

TEST(LiveLoader, CompressedModuleNeedsAKernelThatUnpacksIt) {
  test::Tree tree;
  tree.file("x.ko.xz", std::string("\xfd\x37zXZ\0rest", 10));
  const auto machine = tree.host();
  const auto status = live_module_loader(machine)->load(machine, "/x.ko.xz", "");
  EXPECT_EQ(status.error().code(), Errc::Unsupported);
  EXPECT_THAT(status.error().remedy(), HasSubstr("modprobe"));
}

TEST(LiveLoader, OptionsAreBounded) {
  test::Tree tree;
  tree.file("x.ko", "x");
  const auto machine = tree.host();
  const auto loader = live_module_loader(machine);
  EXPECT_EQ(loader->load(machine, "/x.ko", std::string(5000, 'x')).error().code(), Errc::Invalid);
  EXPECT_EQ(loader->load(machine, "/x.ko", std::string(1, '\0')).error().code(), Errc::Invalid);
}

TEST(LiveLoader, UnloadOfAnUnknownModuleIsAnError) {
  test::Tree tree;
  const auto machine = tree.host();
  const auto status = live_module_loader(machine)->unload("gantry-no-such-module");
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.error().code() == Errc::NotFound || status.error().code() == Errc::Denied ||
              status.error().code() == Errc::Unsupported)
      << status.error().text();
}

TEST(KernelLog, RecordHasATextBehindItsNumbers) {
  EXPECT_EQ(parse_log_record("6,1234,5678,-;nvidia: Unknown symbol x\n SUBSYSTEM=module\n"),
            "nvidia: Unknown symbol x");
  EXPECT_EQ(parse_log_record("no semicolon"), "");
  EXPECT_EQ(parse_log_record("6,1,2,-;a\x1b[2J"), "a\\x1b[2J");
}

TEST(KernelLog, BeginsBehindWhatWasLoggedBefore) {
  test::Tree tree;
  tree.file("dev/kmsg", "6,1,2,-;old\n");
  NewKernelLog log(tree.host());
  EXPECT_THAT(log.read(), IsEmpty());
  test::Tree without;
  EXPECT_THAT(NewKernelLog(without.host()).read(), IsEmpty());
}

}  // namespace
}  // namespace gantry::kernel_module
