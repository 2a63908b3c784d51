// SPDX-License-Identifier: Apache-2.0
// Messages that the NVML child could send after a library has overwritten its memory.
#include "gpu/nvml_child/cgroup.hpp"
#include "gpu/nvml_child/wire.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto packet = gantry::nvml_child::from_datagram(bytes);
  const auto payload = packet.ok() ? packet->payload : bytes;
  const auto readings = gantry::nvml_child::readings_from(payload);
  if (readings.ok() && gantry::nvml_child::to_bytes(*readings) != payload) __builtin_trap();
  (void)gantry::nvml_child::event_from(payload).ok();
  (void)gantry::nvml_child::parse_cgroup_owner(bytes);
  return 0;
}
