// SPDX-License-Identifier: Apache-2.0
// Amounts as Kubernetes writes them: "10", 10, "2k", "1e3", "10Gi", "500m". The API server writes
// 10000 back as "10k", so whoever reads a resource must know all of them. Pure.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"

#include <cstdint>
#include <string_view>

namespace gantry::podspec {

struct Quantity {
  std::uint64_t value = 0;  // rounded down
  std::uint32_t milli = 0;  // what is left, in thousandths, at least 1 where anything is
  bool binary = false;      // written with Ki, Mi, Gi ...
  bool whole() const { return milli == 0; }
  bool operator==(const Quantity&) const = default;
};

// Invalid for what is no quantity, is below zero, or beyond 2^63 - 1.
Result<Quantity> parse_quantity(std::string_view text);
Result<Quantity> read_quantity(const json::Value& value);  // a JSON string or number

}  // namespace gantry::podspec
