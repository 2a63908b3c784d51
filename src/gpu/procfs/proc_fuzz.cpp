// SPDX-License-Identifier: Apache-2.0
#include "gpu/procfs/cpuinfo.hpp"
#include "gpu/procfs/gpus.hpp"
#include "gpu/procfs/version.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)gantry::procfs::parse_version_file(text);
  (void)gantry::procfs::parse_information_file(text);
  (void)gantry::procfs::has_hypervisor_flag(text);
  return 0;
}
