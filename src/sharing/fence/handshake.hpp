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
  Pending,   // the daemon has not answered yet
};

// Leaves descriptors open only with a welcome.
HandshakeResult perform_handshake(FenceRole role, uint64_t wait_ms, Handshake& said);

// The same in two steps that never wait. The first returns the socket and Pending, or -1 and the
// reason. The second may be repeated while it returns Pending; otherwise it closes the socket,
// unless the answer is a welcome.
int start_handshake(FenceRole role, HandshakeResult& answer);
HandshakeResult finish_handshake(int socket, Handshake& said);

}  // namespace gantry::fence
