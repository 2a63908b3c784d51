// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/module_dependencies.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::kernel_module {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kDependencies =
    "kernel/drivers/gpu/drm/drm.ko:\n"
    "kernel/drivers/gpu/drm/drm_kms_helper.ko.xz: kernel/drivers/gpu/drm/drm.ko\n"
    "kernel/drivers/infiniband/core/ib_core.ko: kernel/a/b.ko kernel/a/c.ko\n"
    "kernel/a/b.ko: kernel/a/c.ko\n"
    "kernel/a/c.ko:\n"
    "no colon\n:\n";
constexpr std::string_view kBuiltin = "kernel/drivers/i2c/i2c-core.ko\n\n";

std::vector<std::string> first(std::vector<std::string> depends,
                               const std::vector<LoadedModule>& loaded = {}) {
  const auto index = parse_module_index(kDependencies, kBuiltin);
  const ModuleFile file{.name = "nvidia_drm", .depends = std::move(depends)};
  const auto paths = files_to_load_first(file, index, loaded, "6.1.0");
  EXPECT_TRUE(paths.ok());
  return paths.ok() ? *paths : std::vector<std::string>();
}

TEST(ModuleDependencies, ComeInTheOrderOfTheirLoad) {
  EXPECT_THAT(first({"drm_kms_helper", "nvidia-modeset", "i2c-core"}),
              ElementsAre("/lib/modules/6.1.0/kernel/drivers/gpu/drm/drm.ko",
                          "/lib/modules/6.1.0/kernel/drivers/gpu/drm/drm_kms_helper.ko.xz"));
  EXPECT_THAT(first({"ib-core"}),
              ElementsAre("/lib/modules/6.1.0/kernel/a/c.ko", "/lib/modules/6.1.0/kernel/a/b.ko",
                          "/lib/modules/6.1.0/kernel/drivers/infiniband/core/ib_core.ko"));
}

TEST(ModuleDependencies, LoadedModulesAreNotLoadedAgain) {
  EXPECT_THAT(first({"ib-core", "drm"}, {{.name = "ib_core"}, {.name = "drm"}}), IsEmpty());
  EXPECT_THAT(first({"drm_kms_helper", "drm"}, {{.name = "drm"}}),
              ElementsAre("/lib/modules/6.1.0/kernel/drivers/gpu/drm/drm_kms_helper.ko.xz"));
}

TEST(ModuleDependencies, NamesTheModuleThatTheKernelDoesNotHave) {
  const auto index = parse_module_index(kDependencies, kBuiltin);
  const auto paths =
      files_to_load_first({.name = "nvidia", .depends = {"ipmi_msghandler"}}, index, {}, "6.1.0");
  ASSERT_FALSE(paths.ok());
  EXPECT_EQ(paths.error().code(), Errc::NotFound);
  EXPECT_THAT(paths.error().text(), HasSubstr("needs the module ipmi_msghandler, which kernel "
                                              "6.1.0 does not have"));
}

TEST(ModuleIndex, IsReadForOneKernel) {
  test::Tree tree;
  tree.file("lib/modules/6.1.0/modules.dep", kDependencies);
  const auto index = read_module_index(tree.host(), "6.1.0");
  ASSERT_TRUE(index.ok()) << index.error().text();
  EXPECT_EQ(index->modules.size(), 5U);
  EXPECT_THAT(index->builtin, IsEmpty());
  EXPECT_EQ(read_module_index(tree.host(), "6.1.1").error().code(), Errc::NotFound);
  EXPECT_EQ(read_module_index(tree.host(), "../6.1.0").error().code(), Errc::Invalid);
}

}  // namespace
}  // namespace gantry::kernel_module
