// SPDX-License-Identifier: Apache-2.0
// The driver's lists and names are bounded and read without a fault.
#include "base/core/result.hpp"
#include "vm/vgpu/vgpu_type.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::vgpu;  // NOLINT(google-build-using-namespace): a program of its own
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& type : parse_creatable_types(text)) {
    GANTRY_ASSERT(!type.id.empty() && !type.name.empty());
    (void)parse_type_name(type_key(type.name));
  }
  GANTRY_ASSERT(parse_creatable_types(text).size() <= kMaxTypes);
  (void)parse_description(text);
  if (const auto type = parse_type_name(text)) {
    const auto plain = parse_type_name(without_attribute(*type));
    GANTRY_ASSERT(plain && plain->gigabytes == type->gigabytes && plain->slices == type->slices);
  }
  return 0;
}
