// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/config_file.hpp"

#include <gmock/gmock.h>

namespace gantry::vgpu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::string_view kFile = R"(version: v1
vgpu-configs:
  default:
    - devices: all
      vgpu-devices: {}
  small:
    - device-filter: "0x223610DE"
      devices: all
      vgpu-devices:
        A10-4Q: 6
    - device-filter: ["0x20B010DE", "0x20F110DE"]
      devices: [1]
      vgpu-devices: {"A100-1-5C": 7}
)";

std::vector<VgpuGpu> two_gpus() {
  std::vector<VgpuGpu> gpus(2);
  gpus[0].address = *model::PciAddress::parse("0000:3b:00.0");
  gpus[1].address = *model::PciAddress::parse("0000:af:00.0");
  gpus[0].index = 0;
  gpus[1].index = 1;
  gpus[0].vendor = gpus[1].vendor = 0x10de;
  gpus[0].device = 0x2236;
  gpus[1].device = 0x20b0;
  return gpus;
}

std::string refusal(std::string_view text) {
  const auto config = parse_config(text, "vgpu.yaml");
  return config.ok() ? "accepted" : config.error().text();
}

TEST(ConfigFile, SelectsGpusByModelAndIndex) {
  const auto config = parse_config(kFile, "vgpu.yaml");
  ASSERT_TRUE(config.ok()) << config.error().text();
  const auto wanted = select_set(*config, "small", two_gpus());
  ASSERT_TRUE(wanted.ok()) << wanted.error().text();
  ASSERT_EQ(wanted->size(), 2U);
  EXPECT_EQ((*wanted)[0].gpu.sysfs(), "0000:3b:00.0");
  EXPECT_THAT((*wanted)[0].counts, ElementsAre(Pair("A10-4Q", 6U)));
  EXPECT_THAT((*wanted)[1].counts, ElementsAre(Pair("A100-1-5C", 7U)));
  EXPECT_THAT(select_set(*config, "default", two_gpus())->front().counts, IsEmpty());
}

TEST(ConfigFile, NamesTheSetsThatExist) {
  const auto wanted = select_set(*parse_config(kFile, "vgpu.yaml"), "smell", two_gpus());
  ASSERT_FALSE(wanted.ok());
  EXPECT_EQ(wanted.error().code(), Errc::NotFound);
  EXPECT_THAT(wanted.error().text(),
              AllOf(HasSubstr("has no set `smell`"), HasSubstr("default, small")));
}

TEST(ConfigFile, RefusesWithTheLine) {
  EXPECT_THAT(refusal(""), HasSubstr("`version` is missing"));
  EXPECT_THAT(refusal("version: v2\n"), HasSubstr("vgpu.yaml:1: version `v2`"));
  EXPECT_THAT(refusal("version: v1\nvgpu-config: {}\n"),
              HasSubstr("vgpu.yaml:2: the file has no key `vgpu-config`; did you mean "
                        "`vgpu-configs`?"));
  const std::string head = "version: v1\nvgpu-configs:\n  a:\n";
  EXPECT_THAT(refusal(head + "    - vgpu-devices: {A10-4Q: 1}\n"),
              HasSubstr("`devices` is missing"));
  EXPECT_THAT(refusal(head + "    - devices: all\n"), HasSubstr("`vgpu-devices` is missing"));
  EXPECT_THAT(refusal(head + "    - devices: some\n      vgpu-devices: {}\n"),
              HasSubstr("devices must be `all`"));
  EXPECT_THAT(refusal(head + "    - devices: [x]\n      vgpu-devices: {}\n"),
              HasSubstr("`x` is not the index of a GPU"));
  EXPECT_THAT(refusal(head + "    - devices: all\n      vgpu-devices: {A10: 1}\n"),
              HasSubstr("vgpu.yaml:5: `A10` is not the name of a vGPU type"));
  EXPECT_THAT(refusal(head + "    - devices: all\n      vgpu-devices: {A10-4Q: 0}\n"),
              HasSubstr("must be 1 to 1024"));
  EXPECT_THAT(
      refusal(head + "    - devices: all\n      vgpu-devices: {A100-4C: 1, A100-1-5C: 1}\n"),
      HasSubstr("time-sliced and MIG-backed"));
  EXPECT_THAT(refusal(head + "    - devices: all\n      vgpus: {}\n"), HasSubstr("no key `vgpus`"));
  EXPECT_THAT(
      refusal(head + "    - devices: all\n      device-filter: A10\n      vgpu-devices: {}\n"),
      HasSubstr("eight hexadecimal digits"));
}

TEST(ConfigFile, RefusesAGpuThatDoesNotExistOrIsNamedTwice) {
  const std::string head = "version: v1\nvgpu-configs:\n  a:\n";
  auto config =
      *parse_config(head + "    - devices: [2]\n      vgpu-devices: {A10-4Q: 1}\n", "vgpu.yaml");
  EXPECT_THAT(select_set(config, "a", two_gpus()).error().text(),
              HasSubstr("there is no GPU 2: this machine has 0 to 1"));
  config = *parse_config(head +
                             "    - devices: all\n      vgpu-devices: {A10-4Q: 1}\n"
                             "    - devices: [1]\n      vgpu-devices: {A10-8Q: 1}\n",
                         "vgpu.yaml");
  EXPECT_THAT(select_set(config, "a", two_gpus()).error().text(),
              HasSubstr("lines 4 and 6 of `a` both name GPU 1 (0000:af:00.0)"));
}

}  // namespace
}  // namespace gantry::vgpu
