// SPDX-License-Identifier: Apache-2.0
// Configuration files and logs have any content.
#include "base/core/result.hpp"
#include "doctor/archive/mask.hpp"
#include "doctor/archive/secrets.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::doctor;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto clean = remove_secrets(text);
  GANTRY_ASSERT(clean.find("-----BEGIN ") == std::string::npos);
  IdentityMask mask;
  mask.add_word("host-name", "host");
  const auto masked = mask.apply(clean);
  GANTRY_ASSERT(mask.apply(clean) == masked);  // the same identity has the same replacement
  return 0;
}
