// SPDX-License-Identifier: Apache-2.0
// For tests of offers: options from the text of a file, and the offer of a machine with them.
#pragma once

#include "node/options/options.hpp"
#include "node/resources/resources.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace gantry::resources {

inline options::Options options_from(std::string_view file) {
  options::Options options;
  const auto done = options::apply_file("version: v1\n" + std::string(file), "c.yaml", options);
  EXPECT_TRUE(done.ok()) << done.error().text();
  return options;
}

inline Offer offer_of(const model::Inventory& machine, const options::Options& options) {
  auto offer = resources(machine, options);
  EXPECT_TRUE(offer.ok()) << offer.error().text();
  return offer.ok() ? *std::move(offer) : Offer{};
}

}  // namespace gantry::resources
