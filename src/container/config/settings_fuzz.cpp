// SPDX-License-Identifier: Apache-2.0
#include "container/config/keys.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto loaded =
      gantry::config::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!loaded.ok()) return 0;
  for (const auto& key : gantry::config::keys()) {
    (void)gantry::config::to_toml(key, loaded->settings);
  }
  return 0;
}
