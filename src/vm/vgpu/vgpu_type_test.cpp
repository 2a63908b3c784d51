// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/vgpu_type.hpp"

#include <gmock/gmock.h>

namespace gantry::vgpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TypeName, OfATimeSlicedType) {
  const auto type = parse_type_name("A100-10C");
  ASSERT_TRUE(type);
  EXPECT_EQ(type->gpu, "A100");
  EXPECT_EQ(type->gigabytes, 10U);
  EXPECT_EQ(type->series, "C");
  EXPECT_FALSE(type->mig_backed());
  EXPECT_EQ(mig_profile(*type), "");
}

TEST(TypeName, OfAMigBackedType) {
  const auto type = parse_type_name("A100-1-5CME");
  ASSERT_TRUE(type);
  EXPECT_EQ(type->slices, 1U);
  EXPECT_EQ(type->attribute, "ME");
  EXPECT_EQ(mig_profile(*type), "1g.5gb+me");
  EXPECT_EQ(without_attribute(*type), "A100-1-5C");
  EXPECT_EQ(mig_profile(*parse_type_name("H100-1-10CNOME")), "1g.10gb-me");
  EXPECT_EQ(mig_profile(*parse_type_name("H100-2-20CMEALL")), "2g.20gb+me.all");
  EXPECT_EQ(mig_profile(*parse_type_name("DC-1-24QGFX")), "1g.24gb+gfx");
}

TEST(TypeName, OfAGpuWithADashInItsName) {
  const auto type = parse_type_name("RTX6000-Ada-48Q");
  ASSERT_TRUE(type);
  EXPECT_EQ(type->gpu, "RTX6000-Ada");
  EXPECT_FALSE(type->mig_backed());
  EXPECT_EQ(parse_type_name("T4-2B4")->series, "B4");
}

TEST(TypeName, RefusesEverythingElse) {
  for (const char* text : {"", "A10", "A10-", "A10-Q", "A10-4", "A10-0Q", "A10-4X", "-4Q",
                           "A 10-4Q", "A10-4QME", "A10-4Qxx", "A10-99999Q", "1-4C-"}) {
    EXPECT_FALSE(parse_type_name(text)) << text;
  }
}

TEST(TypeKey, IsTheLastWord) {
  EXPECT_EQ(type_key("NVIDIA A10-4Q\n"), "A10-4Q");
  EXPECT_EQ(type_key("GRID T4-8C"), "T4-8C");
  EXPECT_EQ(type_key("T4-8C"), "T4-8C");
}

TEST(CreatableTypes, AreReadInBothOrders) {
  EXPECT_THAT(parse_creatable_types("ID    : vGPU Name\n592   : NVIDIA A10-4Q\n"),
              ElementsAre(ListedType{"592", "NVIDIA A10-4Q"}));
  EXPECT_THAT(parse_creatable_types("Name   ID\nNVIDIA H200X-1-18C   1300\n\n"),
              ElementsAre(ListedType{"1300", "NVIDIA H200X-1-18C"}));
  EXPECT_THAT(parse_creatable_types("1300 NVIDIA L40S-8Q\n1300 NVIDIA L40S-8Q\n"),
              ElementsAre(ListedType{"1300", "NVIDIA L40S-8Q"}));
  EXPECT_THAT(parse_creatable_types("no number here\n12\n: x\n"), IsEmpty());
}

TEST(CreatableTypes, HaveALimit) {
  std::string text;
  for (int i = 1; i < 1000; ++i) text += std::to_string(i) + " : NVIDIA A-1Q\n";
  EXPECT_EQ(parse_creatable_types(text).size(), kMaxTypes);
}

TEST(Description, GivesFramebufferAndInstances) {
  const auto read = parse_description(
      "num_heads=4, frl_config=60, framebuffer=4096M, max_resolution=7680x4320, max_instance=6\n");
  EXPECT_EQ(read.framebuffer_mib, 4096U);
  EXPECT_EQ(read.max_instances, 6U);
  EXPECT_EQ(parse_description("framebuffer=-1M, max_instance=x").framebuffer_mib, 0U);
}

TEST(Uuid, Has36Characters) {
  EXPECT_TRUE(is_uuid("83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"));
  EXPECT_FALSE(is_uuid("83b8f4f2-509f-382f-3c1e-e6bfe0fa100"));
  EXPECT_FALSE(is_uuid("83b8f4f2-509f-382f-3c1e-e6bfe0fa100g"));
  EXPECT_FALSE(is_uuid("83b8f4f2_509f-382f-3c1e-e6bfe0fa1001"));
  EXPECT_FALSE(is_uuid("../../../../../../../../../etc/passwd"));
}

}  // namespace
}  // namespace gantry::vgpu
