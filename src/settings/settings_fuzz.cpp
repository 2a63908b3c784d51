// SPDX-License-Identifier: Apache-2.0
#include "settings/keys.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto loaded =
      gantry::settings::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!loaded.ok()) return 0;
  for (const auto& key : gantry::settings::keys()) {
    (void)gantry::settings::value_text(key, loaded->settings);
  }
  return 0;
}
