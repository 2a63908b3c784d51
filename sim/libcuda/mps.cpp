// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/mps.hpp"

#include "sim/driver/mps.h"
#include "sim/driver/mps_limits_internal.hpp"
#include "sim/driver/mps_socket_internal.hpp"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace gantry::sim::cuda {
namespace {

// As measured on an H200 with driver 580.
constexpr uint64_t kServerBytes = 66ULL << 20U;

uint64_t smaller_limit(uint64_t one, uint64_t other) {
  if (one == 0 || other == 0) return one + other;
  return one < other ? one : other;
}

// A client's own variables can only lower the limits of its server.
void limit_devices(const MpsPacket& welcome) {
  double own_percentage = 100;
  const char* said = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  if (said != nullptr) parse_percentage(said, own_percentage);
  const double percentage =
      own_percentage < welcome.percentage ? own_percentage : welcome.percentage;
  uint64_t own_bytes[GANTRY_SIM_MAX_GPUS] = {};  // by the numbers of this process
  parse_memory_limits(getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), own_bytes);
  for (int i = 0; i < driver.device_count; ++i) {
    Device& device = driver.device[i];
    device.multiprocessors = multiprocessors_of(device.multiprocessors, percentage);
    device.limit_bytes = smaller_limit(welcome.limit_bytes[device.gpu], own_bytes[i]);
  }
}

// A client has no other GPUs than its server.
CUresult keep_devices(uint32_t gpus) {
  int kept = 0;
  for (int i = 0; i < driver.device_count; ++i) {
    if ((gpus & 1U << driver.device[i].gpu) != 0) driver.device[kept++] = driver.device[i];
  }
  driver.device_count = kept;
  return kept == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult leave(CUresult reason) {
  forget_mps();
  return reason;
}

void describe(const Device& device, gantry_sim_mps_device& out) {
  out.gpu = device.gpu;
  out.domain = device.card->domain;
  out.bus = device.card->bus;
  out.device = device.card->device;
  out.function = device.card->function;
  snprintf(out.uuid, sizeof out.uuid, "%s", device.card->uuid);
  snprintf(out.name, sizeof out.name, "%s", device.card->name);
}

}  // namespace

// Waits as long as the daemon needs: a client of another user than the server's waits until the
// server's clients have ended.
CUresult connect_to_mps_daemon() {
  if (driver.mps.serves) return CUDA_SUCCESS;
  driver.mps.daemon = connect_to_mps(mps_pipe_directory());
  if (driver.mps.daemon < 0) return CUDA_SUCCESS;
  MpsPacket packet = {};
  if (!send_text(driver.mps.daemon, MpsMessage::Client, ""))
    return leave(CUDA_ERROR_MPS_CONNECTION_FAILED);
  if (receive_packet(driver.mps.daemon, Wait::Yes, packet) != PacketStatus::Packet ||
      packet.kind != MpsMessage::Welcome)
    return leave(CUDA_ERROR_MPS_CONNECTION_FAILED);
  if (gantry_sim_usage_join(driver.usage, packet.value) != 0)
    return leave(CUDA_ERROR_OPERATING_SYSTEM);
  driver.mps.server = packet.value;
  if (const CUresult none = keep_devices(packet.gpus); none != CUDA_SUCCESS) return leave(none);
  limit_devices(packet);
  return CUDA_SUCCESS;
}

CUresult mps_failure() {
  if (!is_mps_client()) return CUDA_SUCCESS;
  MpsPacket packet = {};
  switch (receive_packet(driver.mps.daemon, Wait::No, packet)) {
    case PacketStatus::Nothing: return CUDA_SUCCESS;
    case PacketStatus::Closed: return CUDA_ERROR_MPS_RPC_FAILURE;
    case PacketStatus::Packet: break;
  }
  return packet.kind == MpsMessage::Terminate ? CUDA_ERROR_MPS_CLIENT_TERMINATED
                                              : CUDA_ERROR_MPS_RPC_FAILURE;
}

void tell_mps_device(const Device& device) {
  if (!is_mps_client()) return;
  MpsPacket packet = {};
  packet.kind = MpsMessage::Device;
  packet.value = device.gpu;
  send_packet(driver.mps.daemon, packet);
}

void forget_mps() {
  if (driver.mps.daemon >= 0) close(driver.mps.daemon);
  driver.mps = Mps{};
}

}  // namespace gantry::sim::cuda

using namespace gantry::sim::cuda;  // NOLINT: the C function below stands outside it

extern "C" __attribute__((visibility("default"))) int gantrySimMpsServe(
    struct gantry_sim_mps_devices* devices) {
  *devices = {};
  driver.mps.serves = true;
  if (const CUresult result = entry::cuInit(0); result != CUDA_SUCCESS) return result;
  devices->server = driver.mps.server = gantry_sim_usage_serve(driver.usage);
  if (devices->server == 0) return CUDA_ERROR_OPERATING_SYSTEM;
  for (int i = 0; i < driver.device_count; ++i) {
    Device& device = driver.device[i];
    if (device.gi >= 0) continue;  // a server of MIG instances is another matter
    if (const CUresult result = may_use(device); result != CUDA_SUCCESS) return result;
    if (const CUresult result = charge(device, kServerBytes); result != CUDA_SUCCESS) return result;
    describe(device, devices->device[devices->count++]);
  }
  return CUDA_SUCCESS;
}
