// SPDX-License-Identifier: Apache-2.0
#include "sharing/policy/share.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

// Any input gives a share or an error, and a share that is written and read again is the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto share = gantry::policy::share_from_json(text);
  if (!share.ok()) return 0;
  const auto again = gantry::policy::share_from_json(gantry::policy::to_json(*share));
  if (!again.ok() || *again != *share) std::abort();
  return 0;
}
