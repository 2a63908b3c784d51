// SPDX-License-Identifier: Apache-2.0

#include "sim/libnvidia-ml/mig_internal.hpp"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace gantry::sim::nvml {
namespace {

struct DeviceTables {
  nvmlDevice_st gpu[GANTRY_SIM_MAX_GPUS];
  nvmlDevice_st mig[GANTRY_SIM_MAX_GPUS][GANTRY_SIM_GI_IDS][GANTRY_SIM_CI_IDS];
};
constinit DeviceTables device_tables{};

bool same_text(const char* a, const char* b) {
  return strcasecmp(a, b) == 0;
}

bool mig_exists(const gantry_sim_gpu_state& gpu, uint32_t gi_id, uint32_t ci_id) {
  for (const auto& instance : gpu.mig) {
    if (instance.used == 0 || instance.gi_id != gi_id) continue;
    for (uint32_t i = 0; i < instance.ci_count; ++i) {
      if (instance.ci[i].ci_id == ci_id) return true;
    }
  }
  return false;
}

// "0000:18:00.0", "00000000:18:00.0", "18:00.0": the domain may be missing.
bool parse_bus_id(const char* text, unsigned int (&number)[4]) {
  int end = 0;
  if (sscanf(text, "%x:%x:%x.%x%n", &number[0], &number[1], &number[2], &number[3], &end) == 4) {
    return text[end] == '\0';
  }
  number[0] = 0;
  return sscanf(text, "%x:%x.%x%n", &number[1], &number[2], &number[3], &end) == 3 &&
         text[end] == '\0';
}

}  // namespace

nvmlDevice_t gpu_handle(uint32_t gpu) {
  return &device_tables.gpu[gpu];
}

uint32_t gpu_of(nvmlDevice_t device) {
  size_t index = 0;
  return find_position(device, device_tables.gpu, GANTRY_SIM_MAX_GPUS, index)
             ? static_cast<uint32_t>(index)
             : GANTRY_SIM_MAX_GPUS;
}

nvmlDevice_t mig_handle(uint32_t gpu, uint32_t gi_id, uint32_t ci_id) {
  if (gi_id >= GANTRY_SIM_GI_IDS || ci_id >= GANTRY_SIM_CI_IDS) return nullptr;
  return &device_tables.mig[gpu][gi_id][ci_id];
}

nvmlReturn_t open_gpu(uint32_t gpu, nvmlDevice_t* device) {
  if (session().access[gpu] != NVML_SUCCESS) return session().access[gpu];
  *device = gpu_handle(gpu);
  return NVML_SUCCESS;
}

nvmlReturn_t resolve(nvmlDevice_t device, Target& target, Reach reach) {
  constexpr size_t kPerGpu = size_t{GANTRY_SIM_GI_IDS} * GANTRY_SIM_CI_IDS;
  size_t index = 0;
  if (find_position(device, device_tables.gpu, GANTRY_SIM_MAX_GPUS, index)) {
    target.gpu = static_cast<uint32_t>(index);
  } else {
    if (!find_position(device, &device_tables.mig[0][0][0], GANTRY_SIM_MAX_GPUS * kPerGpu, index))
      return NVML_ERROR_INVALID_ARGUMENT;
    target.gpu = static_cast<uint32_t>(index / kPerGpu);
    target.mig = true;
    target.gi_id = static_cast<uint32_t>(index % kPerGpu / GANTRY_SIM_CI_IDS);
    target.ci_id = static_cast<uint32_t>(index % GANTRY_SIM_CI_IDS);
  }
  if (target.gpu >= machine().gpu_count) return NVML_ERROR_INVALID_ARGUMENT;
  if (session().access[target.gpu] == NVML_ERROR_NOT_FOUND) return NVML_ERROR_INVALID_ARGUMENT;
  target.card = &machine().gpu[target.gpu];
  if (reach == Reach::Live &&
      __atomic_load_n(&state().gpu[target.gpu].lost, __ATOMIC_RELAXED) != 0) {
    return NVML_ERROR_GPU_IS_LOST;
  }
  if (target.mig) {
    const auto now = gpu_now(target.gpu);
    if (!mig_exists(now, target.gi_id, target.ci_id)) return NVML_ERROR_NOT_FOUND;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t resolve_gpu(nvmlDevice_t device, Target& target, Reach reach, nvmlReturn_t otherwise) {
  const nvmlReturn_t result = resolve(device, target, reach);
  if (result != NVML_SUCCESS) return result;
  return target.mig ? otherwise : NVML_SUCCESS;
}

nvmlReturn_t copy_text(const char* text, char* out, unsigned int length) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const size_t size = strlen(text) + 1;
  if (size > length) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(out, text, size);
  return NVML_SUCCESS;
}

}  // namespace gantry::sim::nvml

using namespace gantry::sim::nvml;

namespace {

nvmlReturn_t by_index(unsigned int index, nvmlDevice_t* device) {
  GANTRY_NEED(device);
  if (index >= session().count) return NVML_ERROR_INVALID_ARGUMENT;
  return open_gpu(session().order[index], device);
}

nvmlReturn_t by_bus_id(const char* bus_id, nvmlDevice_t* device) {
  GANTRY_NEED(bus_id);
  GANTRY_NEED(device);
  unsigned int number[4] = {};
  if (!parse_bus_id(bus_id, number)) return NVML_ERROR_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < session().count; ++i) {
    const auto& card = machine().gpu[session().order[i]];
    if (card.domain == number[0] && card.bus == number[1] && card.device == number[2]) {
      return open_gpu(session().order[i], device);
    }
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t mig_by_uuid(uint32_t gpu, const char* uuid, nvmlDevice_t* device) {
  const auto now = gpu_now(gpu);
  for (const auto& instance : now.mig) {
    if (instance.used == 0) continue;
    for (uint32_t i = 0; i < instance.ci_count; ++i) {
      if (!same_text(instance.ci[i].uuid, uuid)) continue;
      if (!mig_visible(gpu, instance.gi_id, instance.ci[i].ci_id)) return NVML_ERROR_NOT_FOUND;
      if (session().access[gpu] != NVML_SUCCESS) return session().access[gpu];
      *device = mig_handle(gpu, instance.gi_id, instance.ci[i].ci_id);
      return *device == nullptr ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
    }
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t by_uuid(const char* uuid, nvmlDevice_t* device) {
  GANTRY_NEED(uuid);
  GANTRY_NEED(device);
  for (uint32_t i = 0; i < session().count; ++i) {
    const uint32_t gpu = session().order[i];
    if (same_text(machine().gpu[gpu].uuid, uuid)) return open_gpu(gpu, device);
    if (strncasecmp(uuid, "MIG-", 4) != 0) continue;
    const nvmlReturn_t found = mig_by_uuid(gpu, uuid, device);
    if (found != NVML_ERROR_NOT_FOUND) return found;
  }
  return NVML_ERROR_NOT_FOUND;
}

// 16 bytes as "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".
void print_gpu_uuid(const unsigned char* b, char (&out)[48]) {
  snprintf(out, sizeof out,
           "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
           b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
           b[15]);
}

nvmlReturn_t count(unsigned int* out) {
  GANTRY_NEED(out);
  *out = session().count;
  return NVML_SUCCESS;
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int* out) {
  GANTRY_ENTER(nvmlDeviceGetCount);
  return count(out);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* out) {
  GANTRY_ENTER(nvmlDeviceGetCount_v2);
  return count(out);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device) {
  GANTRY_ENTER(nvmlDeviceGetHandleByIndex);
  return by_index(index, device);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  GANTRY_ENTER(nvmlDeviceGetHandleByIndex_v2);
  return by_index(index, device);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* bus_id, nvmlDevice_t* device) {
  GANTRY_ENTER(nvmlDeviceGetHandleByPciBusId);
  return by_bus_id(bus_id, device);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id,
                                                            nvmlDevice_t* device) {
  GANTRY_ENTER(nvmlDeviceGetHandleByPciBusId_v2);
  return by_bus_id(bus_id, device);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  GANTRY_ENTER(nvmlDeviceGetHandleByUUID);
  return by_uuid(uuid, device);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t* uuid,
                                                      nvmlDevice_t* device) {
  GANTRY_ENTER(nvmlDeviceGetHandleByUUIDV);
  GANTRY_NEED(uuid);
  if (uuid->version != nvmlUUID_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  char text[48];
  if (uuid->type == NVML_UUID_TYPE_BINARY) {
    print_gpu_uuid(uuid->value.bytes, text);
  } else if (uuid->type == NVML_UUID_TYPE_ASCII) {
    snprintf(text, sizeof text, "%.*s", NVML_DEVICE_UUID_ASCII_LEN, uuid->value.str);
  } else {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  return by_uuid(text, device);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device) {
  GANTRY_ENTER(nvmlDeviceGetHandleBySerial);
  GANTRY_NEED(serial);
  GANTRY_NEED(device);
  if (serial[0] == '\0') return NVML_ERROR_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < session().count; ++i) {
    if (strcmp(machine().gpu[session().order[i]].serial, serial) == 0) {
      return open_gpu(session().order[i], device);
    }
  }
  return NVML_ERROR_NOT_FOUND;
}
