// SPDX-License-Identifier: Apache-2.0
// A quantity is below 2^63, and a whole one is the number that it says.
#include "cluster/podspec/quantity.hpp"

#include <fmt/format.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto quantity = gantry::podspec::parse_quantity(text);
  if (!quantity.ok()) return 0;
  GANTRY_ASSERT(quantity->value <= INT64_MAX && quantity->milli < 1000);
  const auto again = gantry::podspec::parse_quantity(fmt::to_string(quantity->value));
  GANTRY_ASSERT(again.ok() && again->value == quantity->value && again->whole());
  return 0;
}
