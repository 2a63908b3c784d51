// SPDX-License-Identifier: Apache-2.0
#include "container/oci/device_list.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace gantry::oci {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Result<std::vector<std::string>> parse(std::string_view list) {
  const std::array lists{list};
  return parse_device_list(lists);
}

TEST(DeviceList, TrimsAndDropsEmptiesAndDuplicates) {
  EXPECT_THAT(*parse(" 1,,0 , 1,GPU-a,"), ElementsAre("1", "0", "GPU-a"));
  EXPECT_THAT(*parse("MIG-GPU-a/1/0,0:1"), ElementsAre("MIG-GPU-a/1/0", "0:1"));
  EXPECT_THAT(*parse(""), IsEmpty());
}

TEST(DeviceList, VoidAnywhereIsNothing) {
  EXPECT_THAT(*parse("0,all,void"), IsEmpty());
}

TEST(DeviceList, TheFirstAllOrNoneIsTheWhole) {
  EXPECT_THAT(*parse("0,none,all"), ElementsAre("none"));
  EXPECT_THAT(*parse("0,all,none"), ElementsAre("all"));
}

TEST(DeviceList, HasBounds) {
  std::string list;
  for (int i = 0; i < 1024; ++i) list += fmt::format("{},", i);
  EXPECT_THAT(*parse(list), SizeIs(1024));
  const auto many = parse(list + "1024");
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().code(), Errc::Invalid);
  EXPECT_THAT(many.error().text(), HasSubstr("more than 1024 entries"));
  const std::string commas(kMaxListBytes, ',');
  EXPECT_THAT(*parse(commas), IsEmpty());
  EXPECT_THAT(parse(commas + "0").error().text(), HasSubstr("more than 65536 bytes"));
}

TEST(DeviceList, TheBoundIsForAllListsTogether) {
  const std::string half(kMaxListBytes / 2 + 1, ',');
  const std::array<std::string_view, 2> lists{half, half};
  EXPECT_FALSE(parse_device_list(lists).ok());
}

TEST(DeviceList, KnowsQualifiedNames) {
  EXPECT_TRUE(is_qualified("nvidia.com/gpu=0"));
  for (const auto name : {"0", "GPU-a", "MIG-GPU-a/1/0", "a=b", "/b=c", "a/=c", "a/b=", "a=b/c"}) {
    EXPECT_FALSE(is_qualified(name)) << name;
  }
  EXPECT_EQ(split_qualified_name("acme.org/nic=a=b").kind, "acme.org/nic");
  EXPECT_EQ(split_qualified_name("acme.org/nic=a=b").name, "a=b");
}

}  // namespace
}  // namespace gantry::oci
