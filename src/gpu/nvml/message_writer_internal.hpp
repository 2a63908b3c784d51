// SPDX-License-Identifier: Apache-2.0
// Sends the child's messages: any length, from any thread, one after the other.
#pragma once

#include "gpu/nvml_child/wire.hpp"

#include <cstdint>
#include <mutex>

namespace gantry::nvml {

class MessageWriter {
 public:
  explicit MessageWriter(int socket) : socket_(socket) {}
  // Blocks while the parent does not read. The end of the parent is noticed elsewhere.
  void say(nvml_child::PacketKind kind, std::string_view message);

 private:
  int socket_;
  std::mutex lock_;
};

}  // namespace gantry::nvml
