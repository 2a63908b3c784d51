// SPDX-License-Identifier: Apache-2.0
// What may come through the control socket, or lie in a record on disk.
#include "keeper/questions.hpp"
#include "keeper/record.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto question = gantry::keeper::question_from(bytes);
  if (question.ok()) {
    const auto again = gantry::keeper::question_from(gantry::keeper::to_line(*question));
    if (!again.ok() || again->name != question->name || again->share != question->share)
      __builtin_trap();
  }
  (void)gantry::keeper::answer_from(bytes).ok();
  const auto record = gantry::keeper::record_from_json(bytes);
  if (record.ok() && !gantry::keeper::record_from_json(gantry::keeper::to_json(*record)).ok())
    __builtin_trap();
  return 0;
}
