// SPDX-License-Identifier: Apache-2.0
//
// nvidia-cuda-mps-server of the simulated driver. It holds a server's memory on the GPUs for as
// long as it runs, and writes server.log. The control daemon starts it.
#include "sim/driver/mps.h"
#include "sim/driver/mps_socket_internal.hpp"
#include "sim/mps/log.hpp"
#include "sim/nvidia-smi/loader.h"

#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace gantry::sim;

void log_line(const char* text) {
  mps::write_log(STDOUT_FILENO, "Server", "%s", text);
}

bool find_devices(gantry_sim_mps_devices& devices) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  const auto serve =
      reinterpret_cast<decltype(&gantrySimMpsServe)>(dlsym(library, "gantrySimMpsServe"));
  return serve != nullptr && serve(&devices) == 0;
}

}  // namespace

int main() {
  log_line("Initializing server process");
  gantry_sim_mps_devices devices = {};
  if (!find_devices(devices)) {
    log_line("Failed to initialize the devices");
    return 1;
  }
  for (uint32_t i = 0; i < devices.count; ++i)
    mps::write_log(STDOUT_FILENO, "Server", "Creating server context on device %u (%s)", i,
                   devices.device[i].name);
  if (send(STDIN_FILENO, &devices, sizeof devices, MSG_NOSIGNAL) < 0) return 1;
  MpsPacket packet = {};
  while (receive_packet(STDIN_FILENO, Wait::Yes, packet) == PacketStatus::Packet) {
    if (packet.kind == MpsMessage::Quit) return 0;
    log_line(packet.text);
  }
  return 0;
}
