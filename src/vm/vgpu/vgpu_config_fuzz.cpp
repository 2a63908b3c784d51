// SPDX-License-Identifier: Apache-2.0
// Every text is read or refused with a reason; what is accepted is within the limits.
#include "vm/vgpu/config_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::vgpu;  // NOLINT(google-build-using-namespace): a program of its own
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = parse_config(text, "vgpu.yaml");
  if (!config.ok()) {
    GANTRY_ASSERT(!config.error().text().empty());
    return 0;
  }
  std::vector<VgpuGpu> gpus(2);
  gpus[1].index = 1;
  gpus[1].address.bus = 1;
  for (const auto& [name, entries] : config->sets) {
    for (const auto& entry : entries) {
      for (const auto& [type, count] : entry.vgpus)
        GANTRY_ASSERT(count > 0 && parse_type_name(type).has_value());
    }
    const auto wanted = select_set(*config, name, gpus);
    if (wanted.ok()) GANTRY_ASSERT(wanted->size() <= gpus.size());
  }
  return 0;
}
