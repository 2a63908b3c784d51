// SPDX-License-Identifier: Apache-2.0
#include "offer/resources.hpp"
#include "plan/machine_for_test.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

// Whatever the text: options or an error, and whatever the options: an offer or an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto machine = gantry::plan::machine_for_test();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gantry::offer::Options options;
  if (gantry::offer::apply_file(text, "fuzz.yaml", options).ok() &&
      gantry::offer::check(options).ok()) {
    (void)gantry::offer::resources(machine, options);
  }
  gantry::offer::Options gke{.program = gantry::offer::Program::Gke};
  auto config = gantry::offer::parse_gke_config(text);
  if (config.ok()) {
    gke.gke_config = *std::move(config);
    (void)gantry::offer::resources(machine, gke);
  }
  return 0;
}
