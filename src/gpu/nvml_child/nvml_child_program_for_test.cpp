// SPDX-License-Identifier: Apache-2.0
// Stands in for gantry-nvml and misbehaves: "garbage" sends invalid messages, "endless" never ends
// one, "silent" sends nothing, "babble" repeats itself.
#include "gpu/nvml_child/wire.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace {

constexpr int kSocket = 3;

void say(std::string_view bytes) {
  ::send(kSocket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

int misbehave(std::string_view how) {
  using gantry::nvml_child::PacketKind;
  if (how == "garbage") say("\x01\x02\x03 this is not one of our messages");
  if (how == "babble") {
    for (;;) say(gantry::nvml_child::to_datagram({PacketKind::Event, true, "no event"}));
  }
  const std::string part(gantry::nvml_child::kPayloadLimit, '[');
  while (how == "endless") say(gantry::nvml_child::to_datagram({PacketKind::View, false, part}));
  for (;;) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
  return argc > 1 ? misbehave(argv[1]) : 2;
}
