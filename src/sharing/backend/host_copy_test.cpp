// SPDX-License-Identifier: Apache-2.0
#include "sharing/backend/host_copy.hpp"

#include "sharing/policy/paths.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::backend {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

// An image with a library, and the host where engines look for files.
struct Places {
  test::Tree image;
  test::Tree machine;
  std::string library = (image.file("fence.so", "a library"), image.path("fence.so"));

  std::string named() { return *path_for_engines(machine.host(), library); }
};

TEST(FenceOnHost, OnThisMachineEnginesSeeWhatWeSee) {
  EXPECT_EQ(*path_for_engines(*sys::Host::at("/"), "/usr/lib/gantry/fence.so"),
            "/usr/lib/gantry/fence.so");
}

TEST(FenceOnHost, TheHostGetsACopyAndTheEngineItsPathThere) {
  Places places;
  const auto named = places.named();
  EXPECT_THAT(named, StartsWith(std::string(policy::kFenceCopies)));
  EXPECT_THAT(named, EndsWith("/fence.so"));
  EXPECT_EQ(*places.machine.host().read(named), "a library");
}

TEST(FenceOnHost, OfASimulatedMachineTheEngineGetsTheRealPath) {
  Places places;
  places.machine.file(".gantry-sim");
  const auto named = places.named();
  EXPECT_THAT(named, StartsWith(places.machine.root() + std::string(policy::kFenceCopies)));
  EXPECT_EQ(*sys::Host::at("/")->read(named), "a library");
}

TEST(FenceOnHost, AnotherBuildLeavesTheFirstWhereItIs) {
  Places places;
  const auto first = places.named();
  places.image.file("fence.so", "another");
  const auto second = places.named();
  EXPECT_NE(first, second);
  EXPECT_EQ(*places.machine.host().read(first), "a library");
  EXPECT_EQ(*places.machine.host().read(second), "another");
}

TEST(FenceOnHost, WhatIsNotThereIsAnError) {
  Places places;
  EXPECT_FALSE(path_for_engines(places.machine.host(), places.image.path("none.so")).ok());
}

}  // namespace
}  // namespace gantry::backend
