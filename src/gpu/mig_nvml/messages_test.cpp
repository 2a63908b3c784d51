// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_nvml/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::mig_nvml {
namespace {

using ::testing::HasSubstr;

mig::MigGpu h200() {
  return {
      .index = 1,
      .pci = *model::PciAddress::parse("0000:3b:00.0"),
      .uuid = {"GPU-1"},
      .name = "NVIDIA H200",
      .device_id = 0x233510DE,
      .current = model::MigMode::Enabled,
      .pending = model::MigMode::Disabled,
      .profiles = {{.name = "3g.71gb",
                    .id = 9,
                    .slices = 3,
                    .max = 2,
                    .multiprocessors = 60,
                    .memory_mib = 71424,
                    .engines = {.copy = 3, .decoder = 3, .jpeg = 3},
                    .places = {{0, 4}, {4, 4}},
                    .compute = {{.name = "1c.3g.71gb",
                                 .id = 0,
                                 .slices = 1,
                                 .max = 3,
                                 .places = {{0, 1}, {1, 1}, {2, 1}}}}}},
      .instances = {
          {.id = 2,
           .profile = "3g.71gb",
           .place = {4, 4},
           .compute = {{.id = 0, .profile = "1c.3g.71gb", .place = {1, 1}, .uuid = {"MIG-1"}}}}}};
}

TEST(MigMessages, ReadBackAsTheyWere) {
  const MigRequest request{.kind = MigRequest::Kind::DestroyComputeInstance,
                           .gpu = h200().pci,
                           .enable = true,
                           .profile = 19,
                           .place = {4, 2},
                           .gpu_instance = 5,
                           .compute_instance = 2};
  EXPECT_EQ(*parse_request(to_line(request)), request);
  const MigAnswer answer{
      .done = true,
      .code = Errc::Busy,
      .text = "in use \"now\"",
      .created = 3,
      .machine = {.gpus = {h200()},
                  .processes = {{.gpu = h200().pci, .gpu_instance = 2, .pid = 4711}}}};
  const auto read = parse_answer(to_line(answer));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, answer);
}

TEST(MigMessages, OfAnotherKindAreRefused) {
  for (const auto* text :
       {"", "[]", "{}", "{\"request\":\"reset\"}", "{\"request\":\"read\",\"gpu\":\"x\"}"}) {
    const auto request = parse_request(text);
    ASSERT_FALSE(request.ok()) << text;
    EXPECT_EQ(request.error().code(), Errc::Corrupt) << text;
    EXPECT_FALSE(parse_answer(text).ok()) << text;
  }
}

TEST(MigMessages, WithNumbersOutOfRangeAreRefused) {
  auto line = to_line(MigAnswer{.done = true, .machine = {.gpus = {h200()}}});
  const auto at = line.find("\"max\":2");
  ASSERT_NE(at, line.npos);
  line.replace(at, 7, "\"max\":70000");
  const auto answer = parse_answer(line);
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().text(), HasSubstr("`max` is not a number in range"));
}

TEST(MigMessages, WithTooManyGpusAreRefused) {
  MigAnswer answer{.done = true};
  answer.machine.gpus.resize(257, h200());
  EXPECT_THAT(parse_answer(to_line(answer)).error().text(), HasSubstr("`gpus`"));
}

}  // namespace
}  // namespace gantry::mig_nvml
