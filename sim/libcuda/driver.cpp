// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/driver.hpp"

#include "sim/driver/library_internal.hpp"
#include "sim/driver/running_machine.h"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/host_work.hpp"
#include "sim/libcuda/mps.hpp"

#include <pthread.h>
#include <string.h>

namespace gantry::sim::cuda {

constinit Driver driver{};

namespace {

thread_local DefaultStream stream_of_call = DefaultStream::Legacy;

// A child has no GPU state of its parent and may not create its own; it must call exec first.
void in_forked_child() {
  const bool initialised = driver.initialised != 0;
  driver.lock = Lock{};
  gantry_sim_usage_after_fork(driver.usage);
  gantry_sim_time_after_fork(driver.time);
  forget_mps();
  if (initialised) driver.forked = 1;
}

// The last process removes the shared file.
__attribute__((destructor)) void at_end() {
  if (driver.forked == 0) gantry_sim_time_close(driver.time);
  driver.time = nullptr;
}

CUresult why_no_driver(const struct gantry_sim_image& image) {
  if (__atomic_load_n(&image.state.driver_unloaded, __ATOMIC_ACQUIRE) != 0)
    return CUDA_ERROR_NO_DEVICE;
  if (image.machine.kernel_version[0] == '\0') return CUDA_ERROR_NO_DEVICE;
  if (gantry_sim_control_visible() == 0) return CUDA_ERROR_NO_DEVICE;
  // Unified memory has a module and a node of its own; without them nvidia-smi works and CUDA does
  // not.
  if (image.machine.uvm_major == 0 ||
      device_error("/dev/nvidia-uvm", image.machine.uvm_major, 0) != 0)
    return CUDA_ERROR_UNKNOWN;
  if (strcmp(image.machine.kernel_version, image.machine.driver_version) != 0)
    return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  return CUDA_SUCCESS;
}

CUresult initialise() {
  gantry_sim_look_again();
  const struct gantry_sim_image* image = gantry_sim_image();
  if (image == nullptr) return CUDA_ERROR_NO_DEVICE;
  if (const CUresult reason = why_no_driver(*image); reason != CUDA_SUCCESS) return reason;
  driver.machine = &image->machine;
  if (const CUresult found = find_devices(); found != CUDA_SUCCESS) return found;
  // GPUs behind NVSwitch are not usable before the fabric manager has configured the switches.
  if (image->machine.fabric_manager == 0) return CUDA_ERROR_SYSTEM_NOT_READY;
  if (driver.usage == nullptr) {
    driver.usage = gantry_sim_usage_open(gantry_sim_own_file());
    if (driver.usage == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
    driver.time = gantry_sim_time_open(gantry_sim_own_file(), 0);
    pthread_atfork(nullptr, nullptr, in_forked_child);
  }
  if (const CUresult refused = connect_to_mps_daemon(); refused != CUDA_SUCCESS) return refused;
  gantry_sim_hold_nodes(1);
  driver.initialised = 1;
  return CUDA_SUCCESS;
}

// The memory of a context before the first allocation. The figure of 9.0 was measured on an H200
// with driver 580; the others are of the right order.
uint64_t whole_context_bytes(const Device& device) {
  constexpr uint64_t kMiB = 1U << 20U;
  switch (device.card->cc_major) {
    case 3: return 52 * kMiB;
    case 5: return 58 * kMiB;
    case 6: return 148 * kMiB;
    case 7: return device.card->cc_minor == 0 ? 306 * kMiB : 102 * kMiB;
    case 8: return 412 * kMiB;
    default: return 548995072;
  }
}

}  // namespace

Call::Call(const char* symbol, Phase phase, DefaultStream stream)
    : refused_(static_cast<CUresult>(gantry_sim_fault(symbol))) {
  if (refused_ != CUDA_SUCCESS) return;
  if (on_host_work_thread()) {
    refused_ = CUDA_ERROR_NOT_PERMITTED;
    return;
  }
  driver.lock.lock();
  locked_ = true;
  stream_of_call = stream;
  if (phase == Phase::Normal && (driver.initialised == 0 || driver.forked != 0))
    refused_ = CUDA_ERROR_NOT_INITIALIZED;
}

Call::~Call() {
  if (locked_) driver.lock.unlock();
}

DefaultStream default_stream() {
  return stream_of_call;
}

Device* device_at(CUdevice ordinal) {
  return ordinal >= 0 && ordinal < driver.device_count ? &driver.device[ordinal] : nullptr;
}

CUresult device_failure(const Device& device) {
  if (const CUresult ended = mps_failure(); ended != CUDA_SUCCESS) {
    raise_fault(ended);
    return ended;
  }
  const gantry_sim_state& state = gantry_sim_image()->state;
  if (__atomic_load_n(&state.driver_unloaded, __ATOMIC_RELAXED) != 0) return CUDA_ERROR_NO_DEVICE;
  if (__atomic_load_n(&state.gpu[device.gpu].lost, __ATOMIC_RELAXED) != 0)
    return CUDA_ERROR_UNKNOWN;
  if (__atomic_load_n(&state.gpu[device.gpu].reset_required, __ATOMIC_RELAXED) == 0)
    return CUDA_SUCCESS;
  const auto& errors = state.gpu[device.gpu].ecc_uncorrected_volatile;
  return __atomic_load_n(&errors, __ATOMIC_RELAXED) != 0 ? CUDA_ERROR_ECC_UNCORRECTABLE
                                                         : CUDA_ERROR_LAUNCH_FAILED;
}

CUresult charge(Device& device, uint64_t bytes) {
  if (device.limit_bytes != 0 &&
      (bytes > device.limit_bytes || device.held_bytes > device.limit_bytes - bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  switch (gantry_sim_usage_add(driver.usage, device.gpu, device.gi, device.ci, bytes,
                               device.total_bytes)) {
    case 0: device.held_bytes += bytes; return CUDA_SUCCESS;
    case -1: return CUDA_ERROR_OUT_OF_MEMORY;
    default: return CUDA_ERROR_OPERATING_SYSTEM;
  }
}

void uncharge(Device& device, uint64_t bytes) {
  device.held_bytes -= bytes < device.held_bytes ? bytes : device.held_bytes;
  gantry_sim_usage_sub(driver.usage, device.gpu, device.gi, device.ci, bytes);
}

uint64_t free_bytes(const Device& device) {
  const uint64_t used = gantry_sim_usage_total(driver.usage, device.gpu, device.gi, -1);
  const uint64_t left = used < device.total_bytes ? device.total_bytes - used : 0;
  if (device.limit_bytes == 0) return left;
  const uint64_t own =
      device.held_bytes < device.limit_bytes ? device.limit_bytes - device.held_bytes : 0;
  return own < left ? own : left;
}

uint64_t context_bytes(const Device& device) {
  const uint64_t whole = whole_context_bytes(device);
  if (!is_mps_client() || device.multiprocessors >= device.card->multiprocessors) return whole;
  // Measured as above: 72 MiB with 12 of 132 multiprocessors, 166 with 38, 271 with 66.
  constexpr uint64_t kFixed = 16U << 20U;
  return whole / device.card->multiprocessors * device.multiprocessors + kFixed;
}

namespace entry {

CUresult cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (driver.forked != 0) return CUDA_ERROR_NOT_INITIALIZED;
  return driver.initialised != 0 ? CUDA_SUCCESS : initialise();
}

CUresult cuDriverGetVersion(int* driver_version) {
  if (driver_version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const struct gantry_sim_image* image = gantry_sim_image();
  *driver_version = image == nullptr ? 0 : static_cast<int>(image->machine.cuda_version);
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
