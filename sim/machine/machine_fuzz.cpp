// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/image.hpp"
#include "sim/machine/machine.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto machine = gantry::sim::parse_machine(text, "fuzz.yaml");
  // Every machine that the parser accepts must fit into the image.
  if (machine.ok()) (void)gantry::sim::make_image(*machine);
  return 0;
}
