// SPDX-License-Identifier: Apache-2.0
// The first byte chooses the parser.
#include "gpu/driver/file_names.hpp"
#include "gpu/procfs/device_numbers.hpp"
#include "gpu/procfs/version.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::procfs;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: (void)parse_proc_devices(text).of("nvidia"); break;
    case 1:
      if (const auto minors = parse_mig_minors(text); minors.ok()) (void)minors->gpu_instance(0, 1);
      break;
    case 2: (void)parse_capability_minor(text); break;
    default:
      (void)parse_version_file(text);
      (void)gantry::driver::parse_library_name(text);
      break;
  }
  return 0;
}
