// SPDX-License-Identifier: Apache-2.0
// Memory in a file without a name. The information for other processes is at the end of the file.
#pragma once

#include "sim/libcuda/driver.hpp"

#include <stdint.h>

namespace gantry::sim::cuda {

constexpr unsigned kCloseOnExec = 1;  // MFD_CLOEXEC

struct SharedHeader {
  uint64_t magic, size, id;
  uint32_t gpu;
  int32_t gi;
};

// Moves private memory into such a file without changing its address; the descriptor stays open and
// belongs to the memory. Returns the same descriptor if the memory was moved before; -1 on failure.
int share_in_place(char* data, uint64_t size, const Device& device, SharedHeader& header);
bool read_shared_header(int fd, SharedHeader& header);
// nullptr if it is not such a file. Its header contains its size.
char* map_shared(int fd, SharedHeader& header);
// Call it before freeing memory that may have been shared.
void end_sharing(const char* data);

}  // namespace gantry::sim::cuda
