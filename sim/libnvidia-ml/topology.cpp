// SPDX-License-Identifier: Apache-2.0
// The distance between GPUs, processors and memory.

#include "sim/libnvidia-ml/nvml_internal.hpp"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

using namespace gantry::sim::nvml;

namespace {

constexpr unsigned int kBits = 8 * sizeof(unsigned long);

struct Set {
  unsigned long* words;
  unsigned int size;

  void clear() const { memset(words, 0, size * sizeof *words); }
  void add(unsigned long bit) const {
    if (bit / kBits < size) words[bit / kBits] |= 1UL << (bit % kBits);
  }
};

// "0-27,56-83" into bits. Bounded by the set: numbers beyond it are dropped.
bool parse_list(const char* text, const Set& set) {
  bool any = false;
  while (*text != '\0' && *text != '\n') {
    char* end = nullptr;
    const unsigned long first = strtoul(text, &end, 10);
    if (end == text) return any;
    unsigned long last = first;
    if (*end == '-') last = strtoul(end + 1, &end, 10);
    for (unsigned long bit = first; bit <= last && bit / kBits < set.size; ++bit) set.add(bit);
    any = true;
    text = *end == ',' ? end + 1 : end;
    if (*end != ',') break;
  }
  return any;
}

// From the file of the PCI function if the machine's sysfs is visible; else all processors.
void local_processors(const gantry_sim_gpu& card, const Set& set) {
  set.clear();
  char path[PATH_MAX];
  char text[1024];
  const int length =
      snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%04x:%02x:%02x.%x/local_cpulist",
               gantry_sim_root(), card.domain, card.bus, card.device, card.function);
  if (length > 0 && length < PATH_MAX &&
      gantry::sim::read_small_file(path, text, sizeof text) > 0 && parse_list(text, set)) {
    return;
  }
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  for (long i = 0; i < online; ++i) set.add(static_cast<unsigned long>(i));
}

nvmlReturn_t processors(nvmlDevice_t device, unsigned int size, unsigned long* words) {
  Target target{};
  if (const auto result = resolve(device, target); result != NVML_SUCCESS) return result;
  if (words == nullptr || size == 0) return NVML_ERROR_INVALID_ARGUMENT;
  local_processors(*target.card, {words, size});
  return NVML_SUCCESS;
}

uint8_t level_between(uint32_t a, uint32_t b) {
  return a == b ? 0 : machine().topology[a][b];
}

bool linked(const gantry_sim_gpu& card, uint32_t other) {
  for (uint32_t i = 0; i < card.nvlink_count; ++i) {
    if (card.nvlink[i].remote_type == NVML_NVLINK_DEVICE_TYPE_SWITCH) {
      if (machine().fabric_manager != 0 && machine().gpu[other].nvlink_count > 0) return true;
    } else if (card.nvlink[i].remote_gpu == other) {
      return true;
    }
  }
  return false;
}

nvmlReturn_t two_gpus(nvmlDevice_t first, nvmlDevice_t second, Target& a, Target& b) {
  if (const auto result = resolve_gpu(first, a); result != NVML_SUCCESS) return result;
  return resolve_gpu(second, b);
}

nvmlReturn_t give(const nvmlDevice_t* found, unsigned int total, unsigned int* count,
                  nvmlDevice_t* devices) {
  if (devices != nullptr) {
    if (*count < total) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < total; ++i) devices[i] = found[i];
  }
  *count = total;
  return NVML_SUCCESS;
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t first,
                                                               nvmlDevice_t second,
                                                               nvmlGpuTopologyLevel_t* level) {
  GANTRY_ENTER(nvmlDeviceGetTopologyCommonAncestor);
  Target a{};
  Target b{};
  if (const auto result = two_gpus(first, second, a, b); result != NVML_SUCCESS) return result;
  GANTRY_NEED(level);
  *level = static_cast<nvmlGpuTopologyLevel_t>(level_between(a.gpu, b.gpu));
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device,
                                                            nvmlGpuTopologyLevel_t level,
                                                            unsigned int* count,
                                                            nvmlDevice_t* devices) {
  GANTRY_ENTER_GPU(nvmlDeviceGetTopologyNearestGpus, device);
  GANTRY_NEED(count);
  nvmlDevice_t found[GANTRY_SIM_MAX_GPUS];
  unsigned int total = 0;
  for (uint32_t i = 0; i < session().count; ++i) {
    const uint32_t other = session().order[i];
    if (other != target.gpu && level_between(target.gpu, other) == level) {
      found[total++] = gpu_handle(other);
    }
  }
  return give(found, total, count, devices);
}

GANTRY_EXPORT nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int* count,
                                                       nvmlDevice_t* devices) {
  GANTRY_ENTER(nvmlSystemGetTopologyGpuSet);
  GANTRY_NEED(count);
  unsigned long words[64];
  if (cpu >= 64 * kBits) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlDevice_t found[GANTRY_SIM_MAX_GPUS];
  unsigned int total = 0;
  for (uint32_t i = 0; i < session().count; ++i) {
    const uint32_t gpu = session().order[i];
    local_processors(machine().gpu[gpu], {words, 64});
    if ((words[cpu / kBits] >> (cpu % kBits) & 1UL) != 0) found[total++] = gpu_handle(gpu);
  }
  return give(found, total, count, devices);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t first, nvmlDevice_t second,
                                                  nvmlGpuP2PCapsIndex_t index,
                                                  nvmlGpuP2PStatus_t* status) {
  GANTRY_ENTER(nvmlDeviceGetP2PStatus);
  Target a{};
  Target b{};
  if (const auto result = two_gpus(first, second, a, b); result != NVML_SUCCESS) return result;
  if (status == nullptr || index >= NVML_P2P_CAPS_INDEX_UNKNOWN || a.gpu == b.gpu) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  const bool links = linked(*a.card, b.gpu);
  const uint8_t level = level_between(a.gpu, b.gpu);
  *status = NVML_P2P_STATUS_OK;
  if (a.card->pci_id != b.card->pci_id) {
    *status = NVML_P2P_STATUS_GPU_NOT_SUPPORTED;
  } else if (index == NVML_P2P_CAPS_INDEX_NVLINK || index == NVML_P2P_CAPS_INDEX_ATOMICS) {
    if (!links) *status = NVML_P2P_STATUS_NOT_SUPPORTED;
  } else if (!links && level >= NVML_TOPOLOGY_SYSTEM) {
    *status = NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED;
  } else if (!links && level >= NVML_TOPOLOGY_NODE) {
    *status = NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
  }
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size,
                                                    unsigned long* set) {
  GANTRY_ENTER(nvmlDeviceGetCpuAffinity);
  return processors(device, size, set);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device,
                                                               unsigned int size,
                                                               unsigned long* set,
                                                               nvmlAffinityScope_t scope) {
  GANTRY_ENTER(nvmlDeviceGetCpuAffinityWithinScope);
  if (scope > NVML_AFFINITY_SCOPE_SOCKET) return NVML_ERROR_INVALID_ARGUMENT;
  return processors(device, size, set);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size,
                                                       unsigned long* set,
                                                       nvmlAffinityScope_t scope) {
  GANTRY_ENTER_DEVICE(nvmlDeviceGetMemoryAffinity, device);
  if (set == nullptr || size == 0 || scope > NVML_AFFINITY_SCOPE_SOCKET) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  const Set nodes{set, size};
  nodes.clear();
  // If sysfs says -1, the real library still returns node 0.
  nodes.add(target.card->numa_node < 0 ? 0 : static_cast<unsigned long>(target.card->numa_node));
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceSetCpuAffinity(nvmlDevice_t device) {
  GANTRY_ENTER_GPU(nvmlDeviceSetCpuAffinity, device);
  unsigned long words[16];
  local_processors(*target.card, {words, 16});
  return sched_setaffinity(0, sizeof words, reinterpret_cast<const cpu_set_t*>(words)) == 0
             ? NVML_SUCCESS
             : NVML_ERROR_UNKNOWN;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceClearCpuAffinity(nvmlDevice_t device) {
  GANTRY_ENTER_GPU(nvmlDeviceClearCpuAffinity, device);
  unsigned long words[16];
  memset(words, 0xFF, sizeof words);
  return sched_setaffinity(0, sizeof words, reinterpret_cast<const cpu_set_t*>(words)) == 0
             ? NVML_SUCCESS
             : NVML_ERROR_UNKNOWN;
}

// The NUMA node of memory on the card itself: Grace only.
GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int* node) {
  GANTRY_ENTER_GPU(nvmlDeviceGetNumaNodeId, device);
  GANTRY_NEED(node);
  return NVML_ERROR_NOT_SUPPORTED;
}
