// SPDX-License-Identifier: Apache-2.0
// Memory in a file without a name, with what another process must know of it at the end.
#pragma once

#include "sim/libcuda/driver.hpp"

#include <stdint.h>

namespace gantry::sim::cuda {

struct SharedHeader {
  uint64_t magic, size, id;
  uint32_t gpu;
  int32_t gi;
};

// Moves private memory into such a file without changing its address; the descriptor stays open and
// belongs to the memory. The same again for memory that was moved before. -1 when it cannot be.
int share_in_place(char* data, uint64_t size, const Device& device, SharedHeader& header);
bool read_shared_header(int fd, SharedHeader& header);
// nullptr when it is not one of these. Its header says how long it is.
char* map_shared(int fd, SharedHeader& header);
// To be called before memory that may have been shared goes.
void end_sharing(const char* data);

}  // namespace gantry::sim::cuda
