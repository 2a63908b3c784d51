// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/driver_branches.hpp"
#include "install/preflight/facts_internal.hpp"
#include "install/preflight/modprobe_config.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)gantry::preflight::find_driver_packages(text);
  (void)gantry::preflight::find_glibc_version(text);
  (void)gantry::preflight::find_mount(text, "/usr/local/nvidia");
  (void)gantry::preflight::version_in_google_cache(text);
  (void)gantry::preflight::forbids_module(text, "nvidia");
  (void)gantry::preflight::DriverVersion::parse(text);
  return 0;
}
