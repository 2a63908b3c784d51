// SPDX-License-Identifier: Apache-2.0
// Quantities in all forms of Kubernetes: "10", 10, "2k", "1e3", "10Gi", "500m". The API server
// writes 10000 back as "10k", so a reader must know all forms. Pure.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"

#include <cstdint>
#include <string_view>

namespace gantry::podspec {

struct Quantity {
  std::uint64_t value = 0;  // rounded down
  std::uint32_t milli = 0;  // the rest in thousandths; at least 1 if there is a rest
  bool binary = false;      // written with Ki, Mi, Gi ...
  bool whole() const { return milli == 0; }
  bool operator==(const Quantity&) const = default;
};

// Invalid for a text that is not a quantity, is below zero, or is larger than 2^63 - 1.
Result<Quantity> parse_quantity(std::string_view text);
Result<Quantity> read_quantity(const json::Value& value);  // a JSON string or number

}  // namespace gantry::podspec
