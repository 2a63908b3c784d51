// SPDX-License-Identifier: Apache-2.0
// The handshake with the share daemon when a process attaches: hello and welcome.
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
  NoDaemon,  // the daemon is not running: asking again costs nothing
  No,        // no answer in time, a refusal, or not what gpu/abi/fence.h defines
};

// Leaves descriptors open only with a welcome.
HandshakeResult perform_handshake(FenceRole role, uint64_t wait_ms, Handshake& said);

}  // namespace gantry::fence
