// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/unhealthy_gpus.hpp"

#include "support/parsed_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::podspec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::optional<UnhealthyGpus> read_unhealthy(const std::string& name, const std::string& data) {
  return parse_unhealthy_gpus(
      test::parsed(
          fmt::format(R"({{"metadata":{{"name":"{}","namespace":"kube-system"}}{}}})", name, data))
          .root());
}
UnhealthyGpus gpus(const std::string& text) {
  return read_unhealthy("unhealthy-gpu-n1",
                        fmt::format(R"(,"data":{{"gpus":{}}})", json::quote(text)))
      .value();
}

TEST(UnhealthyGpus, IndicesWithCommasInAnyOrder) {
  const auto marked_unhealthy = gpus("3,0, 12\n");
  EXPECT_EQ(marked_unhealthy.node, "n1");
  EXPECT_THAT(marked_unhealthy.gpus, ElementsAre(0, 3, 12));
  EXPECT_EQ(marked_unhealthy.ignored, "");
  EXPECT_THAT(gpus("5,5,").gpus, ElementsAre(5));
}

TEST(UnhealthyGpus, NothingIsBarredWhereNothingIsSaid) {
  EXPECT_THAT(gpus("").gpus, IsEmpty());
  EXPECT_THAT(read_unhealthy("unhealthy-gpu-n1", "")->gpus, IsEmpty());
  EXPECT_THAT(read_unhealthy("unhealthy-gpu-n1", R"(,"data":{"gpus":[0]})")->gpus, IsEmpty());
}

TEST(UnhealthyGpus, AConfigMapOfAnotherNameIsNone) {
  EXPECT_FALSE(read_unhealthy("coredns", R"(,"data":{"gpus":"0"})"));
  EXPECT_FALSE(read_unhealthy("unhealthy-gpu-", R"(,"data":{"gpus":"0"})"));
}

TEST(UnhealthyGpus, WhatIsNoIndexIsIgnoredAndSaid) {
  const auto marked_unhealthy = gpus("GPU-1a,1,-2,1024,\x01x");
  EXPECT_THAT(marked_unhealthy.gpus, ElementsAre(1));
  EXPECT_THAT(marked_unhealthy.ignored,
              AllOf(HasSubstr("kube-system/unhealthy-gpu-n1"),
                    HasSubstr(R"("GPU-1a", "-2", "1024" and 1 more)"), HasSubstr("write 0,3")));
}

TEST(UnhealthyGpus, AnEndlessTextIsReadInPart) {
  std::string text = "7";
  while (text.size() < 1 << 20) text += ",1";
  text += ",2";
  const auto marked_unhealthy = gpus(text);
  EXPECT_THAT(marked_unhealthy.gpus, ElementsAre(1, 7));
  EXPECT_THAT(marked_unhealthy.ignored, HasSubstr("after 16 KiB is ignored"));
  EXPECT_THAT(gpus(std::string(1 << 20, '1')).gpus, IsEmpty());
  EXPECT_THAT(gpus("0," + std::string(1000, 'x')).ignored, Not(HasSubstr(std::string(50, 'x'))));
}

}  // namespace
}  // namespace gantry::podspec
