// SPDX-License-Identifier: Apache-2.0
// Hello and welcome: what is said to the keeper when a process attaches.
#pragma once

#include "gpu/abi/fence.h"

#include <stdint.h>

namespace gantry::fence {

struct Handshake {
  int socket, limits, usage;  // the caller's to close
  uint32_t slot, gpu_count;
};

enum class HandshakeResult : uint8_t {
  Welcome,
  NotYet,    // soon
  NoDaemon,  // there is no keeper: to ask again costs nothing
  No,        // nobody answers within that time, the answer is no, or it is not what abi.h says
};

// Nothing is left open but with a welcome.
HandshakeResult perform_handshake(FenceRole role, uint64_t wait_ms, Handshake& said);

}  // namespace gantry::fence
