// SPDX-License-Identifier: Apache-2.0
// The start and the end of a session, and the state that all calls in between use.

#include "sim/driver/running_machine.h"
#include "sim/libnvidia-ml/clients_internal.hpp"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

namespace gantry::sim::nvml {
namespace {

constinit Lock lock{};
constinit Session current_session{};

nvmlReturn_t why_no_driver(const struct gantry_sim_image& image) {
  if (__atomic_load_n(&image.state.driver_unloaded, __ATOMIC_ACQUIRE) != 0 ||
      image.machine.kernel_version[0] == '\0') {
    return NVML_ERROR_DRIVER_NOT_LOADED;
  }
  switch (control_error()) {
    case 0: break;
    case EACCES: return NVML_ERROR_NO_PERMISSION;
    case EPERM: return NVML_ERROR_UNKNOWN;  // a device cgroup does not allow the node
    default: return NVML_ERROR_DRIVER_NOT_LOADED;
  }
  if (strcmp(image.machine.kernel_version, image.machine.driver_version) != 0) {
    return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
  }
  return NVML_SUCCESS;
}

// A missing node hides its GPU, as in a container; a node without permission does not.
void find_gpus(const struct gantry_sim_image& image) {
  current_session.count = 0;
  for (uint32_t gpu = 0; gpu < image.machine.gpu_count; ++gpu) {
    const int error = gpu_error(gpu);
    current_session.access[gpu] = NVML_ERROR_NOT_FOUND;
    if (image.machine.gpu[gpu].excluded != 0 || (error != 0 && error != EACCES)) continue;
    // The real library attaches to a GPU when it starts; a GPU that is already lost stays lost for
    // this session.
    const bool lost = __atomic_load_n(&image.state.gpu[gpu].lost, __ATOMIC_RELAXED) != 0;
    current_session.access[gpu] = error == EACCES ? NVML_ERROR_NO_PERMISSION
                                  : lost          ? NVML_ERROR_GPU_IS_LOST
                                                  : NVML_SUCCESS;
    current_session.order[current_session.count++] = gpu;
  }
}

nvmlReturn_t start(unsigned int flags) {
  const Guard guard(lock);
  if (current_session.users > 0) {
    ++current_session.users;
    return NVML_SUCCESS;
  }
  gantry_sim_look_again();
  const auto* image = gantry_sim_image();
  if (image == nullptr) return NVML_ERROR_DRIVER_NOT_LOADED;
  if (const nvmlReturn_t reason = why_no_driver(*image); reason != NVML_SUCCESS) return reason;
  find_gpus(*image);
  if (current_session.count == 0 && (flags & NVML_INIT_FLAG_NO_GPUS) == 0 &&
      image->machine.gpu_count == 0) {
    return NVML_ERROR_DRIVER_NOT_LOADED;  // the kernel module refuses to load without a GPU
  }
  current_session.branch =
      static_cast<uint32_t>(strtoul(image->machine.driver_version, nullptr, 10));
  gantry_sim_hold_nodes(0);
  hold_gpus();
  __atomic_store_n(&current_session.users, 1, __ATOMIC_RELEASE);
  return NVML_SUCCESS;
}

nvmlReturn_t start_with_fault(const char* function, unsigned int flags) {
  if (const int fault = gantry_sim_fault(function); fault != 0)
    return static_cast<nvmlReturn_t>(fault);
  return start(flags);
}

}  // namespace

const Session& session() {
  return current_session;
}
const gantry_sim_machine& machine() {
  return gantry_sim_image()->machine;
}
const gantry_sim_state& state() {
  return gantry_sim_image()->state;
}

nvmlReturn_t check_session(uint32_t branch) {
  if (__atomic_load_n(&current_session.users, __ATOMIC_ACQUIRE) <= 0)
    return NVML_ERROR_UNINITIALIZED;
  return branch > current_session.branch ? NVML_ERROR_FUNCTION_NOT_FOUND : NVML_SUCCESS;
}

nvmlReturn_t check_driver_loaded() {
  return __atomic_load_n(&state().driver_unloaded, __ATOMIC_ACQUIRE) != 0
             ? NVML_ERROR_DRIVER_NOT_LOADED
             : NVML_SUCCESS;
}

nvmlReturn_t enter(const char* function, uint32_t branch) {
  if (const auto result = check_session(branch); result != NVML_SUCCESS) return result;
  if (const int fault = gantry_sim_fault(function); fault != 0)
    return static_cast<nvmlReturn_t>(fault);
  return check_driver_loaded();
}

}  // namespace gantry::sim::nvml

using namespace gantry::sim::nvml;

GANTRY_EXPORT nvmlReturn_t nvmlInit(void) {
  return start_with_fault("nvmlInit", 0);
}
GANTRY_EXPORT nvmlReturn_t nvmlInit_v2(void) {
  return start_with_fault("nvmlInit_v2", 0);
}
GANTRY_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
  return start_with_fault("nvmlInitWithFlags", flags);
}

GANTRY_EXPORT nvmlReturn_t nvmlShutdown(void) {
  if (const int fault = gantry_sim_fault("nvmlShutdown"); fault != 0) {
    return static_cast<nvmlReturn_t>(fault);
  }
  const gantry::sim::Guard guard(lock);
  if (current_session.users <= 0) return NVML_ERROR_UNINITIALIZED;
  if (__atomic_sub_fetch(&current_session.users, 1, __ATOMIC_RELEASE) == 0) {
    drop_event_sets();
    gantry_sim_release_nodes();
    release_gpus();
  }
  return NVML_SUCCESS;
}
