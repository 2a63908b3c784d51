// SPDX-License-Identifier: Apache-2.0
// Any bytes as a list of digests.
#include "install/driver_package/checksum.hpp"
#include "install/driver_package/module_checksums.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::driver_package;  // NOLINT: a fuzz target
  const auto digests = parse_checksums({reinterpret_cast<const char*>(data), size});
  if (!digests.ok()) return 0;
  for (const auto& [name, digest] : *digests)
    GANTRY_ASSERT(!name.empty() && parse_sha256(digest).ok());
  return 0;
}
