// SPDX-License-Identifier: Apache-2.0
// Any bytes as the file with the saved health.
#include "gpu/health/health.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gantry::health::HealthMonitor monitor;
  if (!monitor.restore(text, "boot").ok()) return 0;
  gantry::health::HealthMonitor again;
  if (!again.restore(monitor.saved("boot"), "boot").ok()) __builtin_trap();
  return 0;
}
