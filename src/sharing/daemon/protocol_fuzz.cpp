// SPDX-License-Identifier: Apache-2.0
// Parses bytes as they may come through the control socket or from a record on disk.
#include "sharing/daemon/protocol.hpp"
#include "sharing/daemon/share_record.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto question = gantry::daemon::parse_request(bytes);
  if (question.ok()) {
    const auto again = gantry::daemon::parse_request(gantry::daemon::to_line(*question));
    if (!again.ok() || again->name != question->name || again->share != question->share ||
        again->changes != question->changes)
      __builtin_trap();
  }
  (void)gantry::daemon::parse_response(bytes).ok();
  const auto record = gantry::daemon::record_from_json(bytes);
  if (record.ok() && !gantry::daemon::record_from_json(gantry::daemon::to_json(*record)).ok())
    __builtin_trap();
  return 0;
}
