// SPDX-License-Identifier: Apache-2.0
// Any bytes as the beginning of a .run file. What is found lies inside the file, and more of the
// same file does not change it.
#include "install/driver_package/run_header.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::driver_package;  // NOLINT: a fuzz target
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto header = parse_run_header(text, size);
  const auto in_more = parse_run_header(text, size + 1000);
  if (!header.ok()) return 0;
  GANTRY_ASSERT(header->payload_offset + header->payload_bytes == size);
  GANTRY_ASSERT(header->payload_offset >= 4);
  GANTRY_ASSERT(is_driver_version(header->version));
  GANTRY_ASSERT(in_more.ok() && in_more->payload_offset == header->payload_offset);
  const auto name = parse_run_name(header->target_directory);
  GANTRY_ASSERT(name.ok() && name->version == header->version);
  GANTRY_ASSERT(parse_run_name(run_file_name(*name)).ok());
  return 0;
}
