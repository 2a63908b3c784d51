// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_change/state.hpp"

#include "gpu/mig_change/fake_card_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::mig_change {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

GpuState full() {
  return {.gpu = FakeCard::address(),
          .uuid = {"GPU-1"},
          .stored = halves(),
          .change = StoredChange{.what = "gantry mig apply x", .former = off(), .wanted = mixed()}};
}

TEST(MigState, ReadsBackAsItWas) {
  EXPECT_EQ(*parse_state(to_json(full())), full());
  const GpuState none{.gpu = FakeCard::address()};
  EXPECT_EQ(*parse_state(to_json(none)), none);
}

TEST(MigState, ThatIsMissingMeansThatTheGpuIsNotManaged) {
  const test::Tree tree;
  const auto state = read_state(tree.host(), FakeCard::address());
  ASSERT_TRUE(state.ok());
  EXPECT_FALSE(state->stored);
  EXPECT_TRUE(read_states(tree.host()).states.empty());
}

TEST(MigState, ThatIsDamagedNamesTheFile) {
  test::Tree tree;
  tree.file("var/lib/gantry/mig/0000:3b:00.0.json", "{\"version\":1,");
  const auto state = read_state(tree.host(), FakeCard::address());
  EXPECT_EQ(state.error().code(), Errc::Corrupt);
  EXPECT_THAT(state.error().remedy(), HasSubstr("sudo rm "));
  EXPECT_THAT(read_states(tree.host()).problems, SizeIs(1));
}

TEST(MigState, OfALaterVersionIsLeftAlone) {
  test::Tree tree;
  tree.file("var/lib/gantry/mig/0000:3b:00.0.json", "{\"version\":2}");
  const auto state = read_state(tree.host(), FakeCard::address());
  EXPECT_EQ(state.error().code(), Errc::Unsupported);
}

TEST(MigState, OfAnotherGpuIsRefused) {
  test::Tree tree;
  tree.file("var/lib/gantry/mig/0000:af:00.0.json", to_json(full()));
  EXPECT_EQ(read_state(tree.host(), *model::PciAddress::parse("0000:af:00.0")).error().code(),
            Errc::Corrupt);
}

}  // namespace
}  // namespace gantry::mig_change
