// SPDX-License-Identifier: Apache-2.0
// Hello and welcome: what is said to the keeper when a process attaches.
#pragma once

#include "gpu/abi/fence.h"

#include <stdint.h>

namespace gantry::fence {

struct Conversation {
  int socket, limits, usage;  // the caller's to close
  uint32_t slot, gpu_count;
};

enum class Answer : uint8_t {
  Welcome,
  NotYet,  // soon
  Nobody,  // there is no keeper: to ask again costs nothing
  No,      // nobody answers within that time, the answer is no, or it is not what abi.h says
};

// Nothing is left open but with a welcome.
Answer converse(FenceRole role, uint64_t wait_ms, Conversation& said);

}  // namespace gantry::fence
