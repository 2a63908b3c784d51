// SPDX-License-Identifier: Apache-2.0
// The messages between the simulated MPS daemon, its servers, its clients and its users. A message
// is one packet of fixed size on a Unix socket; the kernel tells who sent it.
#pragma once

#include "sim/driver/image.h"

#include <stddef.h>
#include <stdint.h>

namespace gantry::sim {

enum class MpsMessage : uint32_t {
  Command,    // user to daemon: a line
  Answer,     // daemon to user: a line
  End,        // daemon to user: the answer is complete
  Client,     // client to daemon: lets it in
  Welcome,    // daemon to client: its server and limits
  Device,     // client to daemon: it uses a GPU
  Terminate,  // daemon to client: no work from now on
  Log,        // daemon to server: a line for server.log
  Quit,       // daemon to server
};

struct MpsPacket {
  MpsMessage kind;
  uint32_t value;                             // Welcome: the server; Device: the GPU
  uint32_t gpus;                              // Welcome: of the server, one bit each
  double percentage;                          // Welcome: of the multiprocessors
  uint64_t limit_bytes[GANTRY_SIM_MAX_GPUS];  // Welcome: of each GPU of the machine; 0: none
  char text[512];
};

// CUDA_MPS_PIPE_DIRECTORY or its default.
const char* mps_pipe_directory();

// The daemon's socket in a directory, whose name may be longer than a socket's name can be; -1 with
// errno if there is no daemon, or, for listening, if the socket cannot be made.
int connect_to_mps(const char* directory);
int listen_for_mps(const char* directory);

bool send_packet(int fd, const MpsPacket& packet);
bool send_text(int fd, MpsMessage kind, const char* text);

enum class PacketStatus : uint8_t { Packet, Nothing, Closed };
enum class Wait : uint8_t { Yes, No };
PacketStatus receive_packet(int fd, Wait wait, MpsPacket& packet);

}  // namespace gantry::sim
