// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/image.h"
#include "sim/machine/machine.hpp"
#include "sim/machine/machine_internal.hpp"

#include <fmt/format.h>

namespace gantry::sim {
namespace {

constexpr std::string_view kCards = "cards/";
constexpr std::string_view kDrivers = "drivers/";

std::vector<std::string> embedded_below(std::string_view folder) {
  std::vector<std::string> names;
  for (const auto& name : embedded_names()) {
    if (name.starts_with(folder)) names.push_back(name.substr(folder.size()));
  }
  return names;
}

}  // namespace

std::vector<std::string> driver_branches() {
  return embedded_below(kDrivers);
}

Result<Machine> all_cards(std::string_view branch, std::string_view version) {
  std::string text = fmt::format(
      "name: package\n"
      "driver:\n"
      "  include: \"{}\"\n{}"
      "  library_directory: /usr/lib/x86_64-linux-gnu\n"
      "  binary_directory: /usr/bin\n"
      "  firmware_directory: /lib/firmware\n"
      "  fields: {{{}: \"1\"}}\n"
      "gpus:\n",
      branch, version.empty() ? "" : fmt::format("  version: \"{}\"\n", version),
      GANTRY_SIM_PACKAGED);
  const auto cards = embedded_below(kCards);
  for (std::size_t i = 0; i < cards.size(); ++i) {
    // Placeholders: what is one card's own comes from the running kernel.
    text += fmt::format(
        "  - {{card: {0}, uuid: GPU-00000000-0000-0000-0000-{1:012}, minor: {1}, board_id: {1}, "
        "pci: {{address: 0000:{2:02x}:00.0}}}}\n",
        cards[i], i, i + 1);
  }
  return parse_machine(text, fmt::format("{}{}", kDrivers, branch));
}

}  // namespace gantry::sim
