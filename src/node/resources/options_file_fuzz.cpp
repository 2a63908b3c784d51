// SPDX-License-Identifier: Apache-2.0
#include "container/plan/machine_for_test.hpp"
#include "node/resources/resources.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

// Whatever the text: options or an error, and whatever the options: an offer or an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto machine = gantry::plan::machine_for_test();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gantry::options::Options options;
  if (gantry::options::apply_file(text, "fuzz.yaml", options).ok() &&
      gantry::options::check(options).ok()) {
    (void)gantry::resources::resources(machine, options);
  }
  gantry::options::Options gke{.program = gantry::options::Program::Gke};
  auto config = gantry::options::parse_gke_config(text);
  if (config.ok()) {
    gke.gke_config = *std::move(config);
    (void)gantry::resources::resources(machine, gke);
  }
  return 0;
}
