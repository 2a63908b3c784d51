// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/transfer.hpp"

#include <string.h>

namespace gantry::sim::cuda {
namespace {

uint64_t piece_of(Side side, uint64_t offset, uint64_t wanted, char*& data) {
  if (side.device) return piece_at(side.address + offset, wanted, data);
  data = reinterpret_cast<char*>(side.address + offset);
  return wanted;
}

bool on_card(Side side) {
  const Block* block = side.device ? block_at(side.address) : nullptr;
  return block != nullptr && block->space != Space::Host && block->space != Space::Registered;
}

}  // namespace

bool valid(Side side, uint64_t bytes) {
  if (bytes == 0) return true;
  if (side.device) return reachable(side.address, bytes);
  return side.address >= 65536;  // no program has memory in the first pages
}

void move(Side to, Side from, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    char* target = nullptr;
    char* source = nullptr;
    uint64_t length = piece_of(to, done, bytes - done, target);
    length = piece_of(from, done, length, source);
    if (length == 0) return;
    memmove(target, source, length);
    done += length;
  }
}

Path path_between(Side to, Side from) {
  if (on_card(to)) return on_card(from) ? Path::OnDevice : Path::HostToDevice;
  return Path::DeviceToHost;
}

}  // namespace gantry::sim::cuda
