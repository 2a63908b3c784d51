// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/config_write.hpp"

#include "gpu/mig/mig_gpu_for_test.hpp"

#include <gmock/gmock.h>

namespace gantry::mig {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// At the addresses 00, 01, ... in their order.
std::vector<MigGpu> in_order(std::vector<MigGpu> gpus) {
  for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i].pci.bus = static_cast<std::uint8_t>(i);
  return gpus;
}

MigGpu disabled(std::string_view model) {
  auto gpu = gpu_for_test(model);
  gpu.current = model::MigMode::Disabled;
  return gpu;
}

MigConfigFile reread_config(const MigConfigFile& config, bool json) {
  const auto back = parse_config(json ? to_json(config) : to_yaml(config), "written");
  EXPECT_TRUE(back.ok()) << back.error().text() << to_yaml(config);
  return back.ok() ? *back : MigConfigFile{};
}

void expect_same(const MigConfigFile& a, const MigConfigFile& b) {
  ASSERT_EQ(a.configs.size(), b.configs.size());
  for (const auto& [name, entries] : a.configs) {
    auto others = b.configs.at(name);
    for (auto& entry : others) entry.line = 0;
    EXPECT_EQ(entries, others) << name;
  }
}

TEST(MigConfigExport, MergesGpusInTheSameState) {
  const auto config = export_config(
      in_order({gpu_for_test("H200", "7x1g.18gb"), gpu_for_test("H200", "7x1g.18gb")}));
  EXPECT_EQ(to_yaml(config), R"(version: v1
mig-configs:
  "current":
  - devices: all
    mig-enabled: true
    mig-devices:
      "1g.18gb": 7
)");
}

TEST(MigConfigExport, ListsDevicesWhereGpusOfAModelDiffer) {
  const auto config = export_config(
      in_order({disabled("H200"), gpu_for_test("H200", "3g.71gb=1+2"), disabled("H200")}));
  EXPECT_EQ(to_yaml(config), R"(version: v1
mig-configs:
  "current":
  - devices: [0, 2]
    mig-enabled: false
    mig-devices: {}
  - devices: [1]
    mig-enabled: true
    mig-devices:
      "1c.3g.71gb": 1
      "2c.3g.71gb": 1
)");
}

TEST(MigConfigExport, NamesModelsWhereTheyDiffer) {
  const auto config = export_config(in_order(
      {disabled("A100-40GB"), disabled("A100-40GB"), gpu_for_test("A30"), gpu_for_test("A30")}));
  const auto& entries = config.configs.at("current");
  ASSERT_THAT(entries, SizeIs(2));
  EXPECT_THAT(entries[0].device_filter, ElementsAre("0x20B010DE"));
  EXPECT_TRUE(entries[0].all_devices);
  EXPECT_THAT(entries[1].device_filter, ElementsAre("0x20B710DE"));
  const auto across = export_config(in_order(
      {disabled("A100-40GB"), gpu_for_test("A100-40GB"), disabled("A30"), gpu_for_test("A30")}));
  const auto& mixed = across.configs.at("current");
  ASSERT_THAT(mixed, SizeIs(2));
  EXPECT_THAT(mixed[0].device_filter, ElementsAre("0x20B010DE", "0x20B710DE"));
  EXPECT_THAT(mixed[0].devices, ElementsAre(0U, 2U));
  const auto same = export_config(in_order({disabled("A100-40GB"), disabled("A30")}));
  ASSERT_THAT(same.configs.at("current"), SizeIs(1));
  EXPECT_THAT(same.configs.at("current")[0].device_filter, IsEmpty());
}

TEST(MigConfigExport, ReadsBackAsItWasWritten) {
  const auto config = export_config(in_order({gpu_for_test("A100-40GB", "3g.20gb,1g.5gb+me"),
                                              disabled("A30"), gpu_for_test("H200", "7x1g.18gb")}),
                                    "a \"label\"");
  expect_same(config, reread_config(config, false));
  expect_same(config, reread_config(config, true));
}

TEST(MigConfigGenerate, HasTheConventionalNames) {
  const auto config = generate_config({gpu_for_test("H200")});
  ASSERT_TRUE(config.ok());
  std::vector<std::string> names;
  for (const auto& [name, entries] : config->configs) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("all-1g.18gb", "all-1g.18gb.me", "all-1g.35gb", "all-2g.35gb",
                                 "all-3g.71gb", "all-4g.71gb", "all-7g.141gb", "all-balanced",
                                 "all-disabled", "all-enabled"));
  EXPECT_THAT(config->configs.at("all-1g.18gb")[0].counts, ElementsAre(Pair("1g.18gb", 7U)));
  EXPECT_THAT(config->configs.at("all-1g.18gb.me")[0].counts, ElementsAre(Pair("1g.18gb+me", 1U)));
  EXPECT_THAT(config->configs.at("all-balanced")[0].counts,
              ElementsAre(Pair("1g.18gb", 2U), Pair("2g.35gb", 1U), Pair("3g.71gb", 1U)));
  EXPECT_THAT(config->configs.at("all-balanced")[0].device_filter, IsEmpty());
  expect_same(*config, reread_config(*config, false));
  expect_same(*config, reread_config(*config, true));
}

TEST(MigConfigGenerate, SeparatesModels) {
  const auto config =
      generate_config({gpu_for_test("A100-80GB"), gpu_for_test("H100"), gpu_for_test("A30")});
  ASSERT_TRUE(config.ok());
  const auto& common = config->configs.at("all-1g.10gb");
  ASSERT_THAT(common, SizeIs(1));
  EXPECT_THAT(common[0].device_filter, ElementsAre("0x20B210DE", "0x233010DE"));
  EXPECT_THAT(config->configs.at("all-2g.12gb")[0].device_filter, ElementsAre("0x20B710DE"));
  const auto& balanced = config->configs.at("all-balanced");
  ASSERT_THAT(balanced, SizeIs(3));
  EXPECT_THAT(balanced[1].counts, ElementsAre(Pair("1g.6gb", 2U), Pair("2g.12gb", 1U)));
}

TEST(MigConfigGenerate, SeparatesCountsOfTheSameProfile) {
  auto other = gpu_for_test("H200");
  other.device_id = 0x12345678;
  other.profiles[0].max = 4;
  const auto config = generate_config({gpu_for_test("H200"), other});
  const auto& entries = config->configs.at("all-1g.18gb");
  ASSERT_THAT(entries, SizeIs(2));
  EXPECT_THAT(entries[0].device_filter, ElementsAre("0x12345678"));
  EXPECT_THAT(entries[1].counts, ElementsAre(Pair("1g.18gb", 7U)));
}

TEST(MigConfigGenerate, EveryGeneratedConfigurationFits) {
  for (const auto* model :
       {"A100-40GB", "A100-80GB", "H100", "H200", "B200", "A30", "RTX-PRO-6000"}) {
    const std::vector<MigGpu> gpus{gpu_for_test(model)};
    const auto config = generate_config(gpus);
    ASSERT_TRUE(config.ok());
    for (const auto& [name, entries] : config->configs) {
      const auto selection = select_config(*config, name, gpus);
      ASSERT_TRUE(selection.ok()) << selection.error().text();
      const auto decision = solve(gpus[0], selection->layouts[0].request);
      EXPECT_TRUE(std::holds_alternative<LayoutPlan>(decision))
          << model << " " << name << ": " << result_for_test(gpus[0], decision);
    }
  }
}

TEST(MigConfigGenerate, NeedsAGpuWithMig) {
  MigGpu gpu{.name = "Tesla T4", .current = model::MigMode::Unsupported};
  EXPECT_EQ(generate_config({gpu}).error().code(), Errc::NotFound);
}

}  // namespace
}  // namespace gantry::mig
