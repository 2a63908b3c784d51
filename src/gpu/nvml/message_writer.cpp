// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/message_writer_internal.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace gantry::nvml {

void MessageWriter::say(nvml_child::PacketKind kind, std::string_view message) {
  const std::lock_guard guard(lock_);
  do {
    const auto part = message.substr(0, std::min(message.size(), nvml_child::kPayloadLimit));
    message.remove_prefix(part.size());
    const auto bytes = nvml_child::to_datagram({kind, message.empty(), part});
    while (::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) {
      if (errno != EINTR) return;
    }
  } while (!message.empty());
}

}  // namespace gantry::nvml
