// SPDX-License-Identifier: Apache-2.0
// Every accepted inventory must stay the same when it is written and read again.
#include "gpu/model/inventory_json.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto inventory = gantry::model::inventory_from_json(text);
  if (!inventory.ok()) return 0;
  const auto again = gantry::model::inventory_from_json(gantry::model::to_json(*inventory));
  GANTRY_ASSERT(again.ok() && *again == *inventory);
  return 0;
}
