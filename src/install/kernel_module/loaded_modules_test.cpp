// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/loaded_modules.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::kernel_module {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kProc =
    "nvidia_drm 77824 4 - Live 0xffffffffc1a5b000 (POE)\n"
    "nvidia_modeset 1306624 2 nvidia_drm, Live 0xffffffffc18f1000 (POE)\n"
    "nvidia 56807424 193 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (POE)\n"
    "zfs 100 0 [permanent], Loading 0x0\n";

TEST(LoadedModules, HaveUsersReferencesAndState) {
  EXPECT_THAT(
      parse_modules(kProc),
      ElementsAre(
          LoadedModule{.name = "nvidia_drm", .bytes = 77824, .references = 4, .state = "Live"},
          LoadedModule{.name = "nvidia_modeset",
                       .bytes = 1306624,
                       .references = 2,
                       .users = {"nvidia_drm"},
                       .state = "Live"},
          LoadedModule{.name = "nvidia",
                       .bytes = 56807424,
                       .references = 193,
                       .users = {"nvidia_uvm", "nvidia_modeset"},
                       .state = "Live"},
          LoadedModule{.name = "zfs", .bytes = 100, .state = "Loading", .permanent = true}));
}

TEST(LoadedModules, KernelThatCannotUnloadCountsNoReferences) {
  const auto modules = parse_modules("nvidia 56807424 - - Live 0x0000000000000000 (POE)\n");
  ASSERT_EQ(modules.size(), 1U);
  EXPECT_EQ(modules[0].references, -1);
  EXPECT_THAT(modules[0].users, IsEmpty());
}

TEST(LoadedModules, SkipsLinesOfAnotherForm) {
  for (const std::string_view line :
       {"", "nvidia", "nvidia 1 2 -", "nvidia x 2 - Live 0x0", "nvidia 1 -2 - Live 0x0",
        " 1 2 - Live 0x0", "nvidia 99999999999999999999 1 - Live 0x0"})
    EXPECT_THAT(parse_modules(line), IsEmpty()) << line;
  EXPECT_EQ(parse_modules("a 1 99999999999 - Live 0x0")[0].references, 2147483647);
}

TEST(LoadedModules, FindsANameWithDashes) {
  const auto modules = parse_modules(kProc);
  ASSERT_NE(find_loaded(modules, "nvidia-modeset"), nullptr);
  EXPECT_EQ(find_loaded(modules, "nvidia-modeset")->name, "nvidia_modeset");
  EXPECT_EQ(find_loaded(modules, "nvidia-uvm"), nullptr);
}

TEST(LoadedModules, KernelWithoutModulesHasNone) {
  test::Tree tree;
  tree.directory("proc");
  EXPECT_THAT(*read_loaded_modules(tree.host()), IsEmpty());
  tree.file("proc/modules", kProc);
  EXPECT_EQ(read_loaded_modules(tree.host())->size(), 4U);
}

}  // namespace
}  // namespace gantry::kernel_module
