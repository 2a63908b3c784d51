// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/config_file.hpp"

#include "gpu/mig/mig_gpu_for_test.hpp"

#include <gmock/gmock.h>

namespace gantry::mig {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr std::string_view kConfigs = R"(version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false
  all-enabled:
    - devices: all
      mig-enabled: true
      mig-devices: {}
  mixed:
    - device-filter: "0x233510DE"
      devices: all
      mig-enabled: true
      mig-devices:
        "1g.18gb": 2
        "3g.71gb": 1
        "7g.141gb": 0
    - device-filter: ["0x20B010DE", "0x20B710DE"]
      devices: [1, 2]
      mig-enabled: true
      mig-devices: {"1c.3g.20gb": 3}
    - devices: [0]
      mig-enabled: false
)";

// Two H200, an A100 and a T4, in another order than that of their addresses.
std::vector<MigGpu> four_gpus() {
  std::vector<MigGpu> gpus{
      gpu_for_test("A100-40GB"), gpu_for_test("H200"), gpu_for_test("H200"), {}};
  gpus[0].pci.bus = 3;
  gpus[1].pci.bus = 1;
  gpus[2].pci.bus = 2;
  gpus[3].pci.bus = 4;
  gpus[3].name = "Tesla T4";
  gpus[3].current = model::MigMode::Unsupported;
  return gpus;
}

std::string entry_with(std::string_view fields) {
  return "version: v1\nmig-configs:\n  a:\n  - {" + std::string(fields) + "}\n";
}

std::string config_refusal(std::string_view text) {
  const auto config = parse_config(text, "mig.yaml");
  return config.ok() ? "accepted" : config.error().text();
}

std::string entry_refusal(std::string_view fields) {
  return config_refusal(entry_with(fields));
}

TEST(MigConfigFile, SelectsGpusByModelAndIndex) {
  const auto config = parse_config(kConfigs, "mig.yaml");
  ASSERT_TRUE(config.ok()) << config.error().text();
  const auto selection = select_config(*config, "mixed", four_gpus());
  ASSERT_TRUE(selection.ok()) << selection.error().text();
  ASSERT_THAT(selection->layouts, SizeIs(3));
  EXPECT_EQ(selection->layouts[0].gpu, 1U);                   // address 01: index 0
  EXPECT_EQ(to_words(selection->layouts[0].request), "off");  // the later entry wins
  EXPECT_EQ(selection->layouts[1].gpu, 2U);
  EXPECT_EQ(to_words(selection->layouts[1].request), "3g.71gb,2x1g.18gb");
  EXPECT_EQ(selection->layouts[2].gpu, 0U);
  EXPECT_EQ(to_words(selection->layouts[2].request), "3x1c.3g.20gb");
  EXPECT_THAT(selection->notes, IsEmpty());
}

TEST(MigConfigFile, LeavesOutGpusWithoutMig) {
  const auto config = parse_config(kConfigs, "mig.yaml");
  const auto all = select_config(*config, "all-enabled", four_gpus());
  ASSERT_TRUE(all.ok()) << all.error().text();
  EXPECT_THAT(all->layouts, SizeIs(3));
  const auto named =
      parse_config(entry_with("devices: [3], mig-enabled: true, mig-devices: {}"), "mig.yaml");
  const auto refused = select_config(*named, "a", four_gpus());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Unsupported);
  EXPECT_THAT(refused.error().text(), HasSubstr("mig.yaml:4: GPU 3 (Tesla T4) has no MIG"));
  const auto off = parse_config(entry_with("devices: [3], mig-enabled: false"), "mig.yaml");
  EXPECT_THAT(select_config(*off, "a", four_gpus())->layouts, IsEmpty());
}

TEST(MigConfigFile, SaysWhichPartsMeanNoGpu) {
  const auto config = parse_config(
      entry_with("device-filter: A100-SXM4-40GB, devices: [0, 7], mig-enabled: false"), "mig.yaml");
  ASSERT_TRUE(config.ok()) << config.error().text();
  const auto selection = select_config(*config, "", four_gpus());
  ASSERT_TRUE(selection.ok());
  EXPECT_THAT(selection->layouts, IsEmpty());
  EXPECT_THAT(selection->notes,
              ElementsAre(HasSubstr("the device-filter `A100-SXM4-40GB` is not a device id"),
                          HasSubstr("there is no GPU 7: this machine has 0 to 3")));
}

TEST(MigConfigFile, ComparesTheSubsystemIfTheFilterHasOne) {
  auto gpus = four_gpus();
  gpus[1].subsystem_id = 0x18BF10DE;
  const auto config = parse_config(
      entry_with("device-filter: \"0x233510de:0x18bf10de\", devices: all, mig-enabled: false"),
      "f");
  ASSERT_TRUE(config.ok()) << config.error().text();
  EXPECT_THAT(select_config(*config, "a", gpus)->layouts, SizeIs(1));
}

TEST(MigConfigFile, NamesTheConfigurationsThatExist) {
  const auto config = parse_config(kConfigs, "mig.yaml");
  const auto missing = find_config(*config, "balanced");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Errc::NotFound);
  EXPECT_THAT(missing.error().text(), HasSubstr("it has all-disabled, all-enabled, mixed"));
  EXPECT_EQ(find_config(*config, "").error().code(), Errc::Invalid);
  EXPECT_FALSE(find_config(*parse_config("version: v1", "mig.yaml"), "").ok());
}

TEST(MigConfigFile, ReadsJsonToo) {
  const auto config = parse_config(
      R"({"version": "v1", "mig-configs": {"a": [{"devices": "all", "mig-enabled": true,
          "mig-devices": {"1g.18gb+me": 1, "3c.3g.71gb": 1}}]}})",
      "mig.json");
  ASSERT_TRUE(config.ok()) << config.error().text();
  EXPECT_THAT(config->configs.at("a")[0].counts,
              ElementsAre(Pair("1g.18gb+me", 1U), Pair("3g.71gb", 1U)));
}

TEST(MigConfigFile, AcceptsWhatOthersAccept) {
  for (const auto* fields :
       {"devices: all, mig-enabled: false", "devices: all, mig-enabled: no, mig-devices: {}",
        "devices: [], mig-enabled: off, mig-devices: null",
        "devices: all, mig-enabled: false, device-filter: \"\"",
        "devices: all, mig-enabled: true, mig-devices: {0g.0gb: 100}",
        "devices: all, mig-enabled: true, mig-devices: {1g.5gb: 2, 7g.40gb: 0}"}) {
    EXPECT_EQ(entry_refusal(fields), "accepted") << fields;
  }
  EXPECT_EQ(config_refusal("version: v1"), "accepted");
}

TEST(MigConfigFile, RefusesOtherFiles) {
  EXPECT_THAT(config_refusal(""), HasSubstr("`version` is missing"));
  EXPECT_THAT(config_refusal("[]"), HasSubstr("the file must be a map"));
  EXPECT_THAT(config_refusal("version: v2"),
              HasSubstr("mig.yaml:1: version `v2` is not supported"));
  EXPECT_THAT(config_refusal("version: v1\nbogus: 1"), HasSubstr("the file has no field `bogus`"));
  EXPECT_THAT(config_refusal("version: v1\nmig-configs: {}"),
              HasSubstr("at least one configuration"));
  EXPECT_THAT(config_refusal("version: v1\nmig-configs: {a: []}"), HasSubstr("at least one entry"));
  EXPECT_THAT(config_refusal("version: v1\nmig-configs: {a: [1]}"),
              HasSubstr("an entry must be a map"));
  EXPECT_THAT(config_refusal("version: v1\nmig-configs:\n  a:\n  - device: all\n"),
              HasSubstr("mig.yaml:4: an entry has no field `device`; did you mean `devices`?"));
}

TEST(MigConfigFile, RefusesOtherEntries) {
  EXPECT_THAT(entry_refusal("mig-enabled: false"), HasSubstr("the field `devices` is missing"));
  EXPECT_THAT(entry_refusal("devices: all"), HasSubstr("the field `mig-enabled` is missing"));
  EXPECT_THAT(entry_refusal("devices: some, mig-enabled: false"),
              HasSubstr("must be `all` or a list"));
  EXPECT_THAT(entry_refusal("devices: [-1], mig-enabled: false"),
              HasSubstr("`-1` is not the index"));
  EXPECT_THAT(entry_refusal("devices: [\"1\"], mig-enabled: false"), HasSubstr("not the index"));
  EXPECT_THAT(entry_refusal("devices: all, mig-enabled: \"true\""),
              HasSubstr("must be true or false"));
  EXPECT_THAT(entry_refusal("devices: all, mig-enabled: true"),
              HasSubstr("`mig-devices` is missing"));
  EXPECT_THAT(entry_refusal("devices: all, mig-enabled: true, mig-devices: null"),
              HasSubstr("`mig-devices` is missing"));
  EXPECT_THAT(entry_refusal("devices: all, mig-enabled: false, mig-devices: {1g.5gb: 1}"),
              HasSubstr("must be empty if mig-enabled is false"));
  EXPECT_THAT(entry_refusal("devices: all, mig-enabled: true, mig-devices: {1g.5gb: 0}"),
              HasSubstr("all counts are 0"));
  EXPECT_THAT(entry_refusal("devices: all, mig-enabled: true, mig-devices: {1g.5gb: -1}"),
              HasSubstr("must be a number, 0 or more"));
  EXPECT_THAT(entry_refusal("devices: all, mig-enabled: true, mig-devices: {1g.5gb: \"2\"}"),
              HasSubstr("must be a number, 0 or more"));
  EXPECT_THAT(entry_refusal("devices: all, mig-enabled: true, mig-devices: {bogus: 2}"),
              HasSubstr("mig.yaml:4: \"bogus\" is not the name of a MIG profile"));
  EXPECT_THAT(entry_refusal("devices: all, mig-enabled: true, mig-devices: [1g.5gb]"),
              HasSubstr("must be a map from profiles to counts"));
  EXPECT_THAT(entry_refusal("devices: all, mig-enabled: false, device-filter: {}"),
              HasSubstr("device-filter must be a device id"));
}

TEST(MigConfigFile, RefusesMoreInstancesThanAnyGpuHasWhenItIsSelected) {
  const auto config = parse_config(
      entry_with("devices: all, mig-enabled: true, mig-devices: {1g.18gb: 100}"), "mig.yaml");
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(select_config(*config, "a", four_gpus()).error().text(),
              HasSubstr("mig.yaml:4: 1g.18gb 100 times: at most 64"));
}

}  // namespace
}  // namespace gantry::mig
