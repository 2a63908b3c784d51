// SPDX-License-Identifier: Apache-2.0
// What the sensor's child could say after a library has scribbled in its memory.
#include "sensor/cgroup.hpp"
#include "sensor/wire_internal.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto packet = gantry::sensor::from_datagram(bytes);
  const auto payload = packet.ok() ? packet->payload : bytes;
  const auto readings = gantry::sensor::readings_from(payload);
  if (readings.ok() && gantry::sensor::to_bytes(*readings) != payload) __builtin_trap();
  (void)gantry::sensor::event_from(payload).ok();
  (void)gantry::sensor::owner_of(bytes);
  return 0;
}
