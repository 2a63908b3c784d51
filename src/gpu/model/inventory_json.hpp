// SPDX-License-Identifier: Apache-2.0
// The inventory's JSON form, described in docs/inventory-json.md: /run/gantry/inventory.json,
// `gantry info --json`, and the answer of a probing child to its parent.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/inventory.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::model {

constexpr std::size_t kInventoryJsonLimit = std::size_t{8} << 20;  // a full 16-GPU node has 200 KiB

enum class JsonLayout : std::uint8_t { Pretty, Compact };

// Keys in a fixed order; unknown values are null; bytes that are not UTF-8 become U+FFFD.
std::string to_json(const Inventory& inventory, JsonLayout layout = JsonLayout::Pretty);

// The same document with only these keys of its first level, in its order, for commands that show a
// part.
std::string to_json_part(const Inventory& inventory, const std::vector<std::string>& keys);

// Strict: a missing key, a wrong type, an unknown enumerator, a number out of range, a link matrix
// that is not square, another schema, more than kInventoryJsonLimit bytes or too deep nesting is
// Corrupt, with the path of the bad key ("gpus[3].memory_bytes"). Unknown keys are ignored.
Result<Inventory> inventory_from_json(std::string_view text);

}  // namespace gantry::model
