// SPDX-License-Identifier: Apache-2.0
#include "container/publish/other_kinds.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::publish {
namespace {

using testing::HasSubstr;

model::Inventory with_storage() {
  model::Inventory machine;
  machine.nodes.push_back({.path = "/dev/nvidia-fs0", .major = 503, .why = "GPUDirect Storage"});
  return machine;
}

TEST(Kinds, EachHasAFileOfItsOwn) {
  EXPECT_EQ(spec_path(SpecKind::Gds), "/var/run/cdi/nvidia-gds.yaml");
  EXPECT_EQ(spec_path(SpecKind::Imex), "/var/run/cdi/nvidia-imex-channel.yaml");
}

TEST(Kinds, AreWrittenOnce) {
  test::Tree tree;
  tree.directory("var/run/cdi");
  const auto host = tree.host();
  const auto first = refresh_kind(host, with_storage(), {.kind = SpecKind::Gds});
  ASSERT_TRUE(first.ok()) << first.error().text();
  EXPECT_TRUE(*first);
  const auto text = host.read("/var/run/cdi/nvidia-gds.yaml");
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("kind: nvidia.com/gds"));
  EXPECT_THAT(*text, HasSubstr("/dev/nvidia-fs0"));
  EXPECT_FALSE(*refresh_kind(host, with_storage(), {.kind = SpecKind::Gds}));
}

TEST(Kinds, WhatIsNotThereIsNotWritten) {
  test::Tree tree;
  tree.directory("var/run/cdi");
  const auto host = tree.host();
  const auto none = refresh_kind(host, {}, {.kind = SpecKind::Gdrcopy});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Errc::NotFound);
  EXPECT_FALSE(host.info("/var/run/cdi/nvidia-gdrcopy.yaml").ok());
}

}  // namespace
}  // namespace gantry::publish
