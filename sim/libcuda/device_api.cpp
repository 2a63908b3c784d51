// SPDX-License-Identifier: Apache-2.0
// Entry points that query devices.
#include "sim/libcuda/attributes.hpp"
#include "sim/libcuda/driver.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/mps.hpp"

#include <limits.h>
#include <stdio.h>
#include <string.h>

namespace gantry::sim::cuda {
namespace {

// The vendor cuts a name that does not fit and ends it.
CUresult give_text(const char* text, char* out, int length) {
  if (out == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(out, static_cast<size_t>(length), "%s", text);
  return CUDA_SUCCESS;
}

int value_of(const Device& device, CUdevice_attribute which) {
  int value = 0;
  attribute(device, which, value);
  return value;
}

// Peers need the same GPU generation and a connection: NVLink, or PCIe below one root.
bool can_access(const Device& one, const Device& other) {
  if (one.gpu == other.gpu || one.gi >= 0 || other.gi >= 0) return false;
  if (one.card->cc_major != other.card->cc_major) return false;
  if (one.card->nvlink_count > 0 && other.card->nvlink_count > 0) return true;
  return driver.machine->topology[one.gpu][other.gpu] < 40;
}

}  // namespace

namespace entry {

CUresult cuDeviceGetCount(int* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = driver.device_count;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device_at(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  const Device* device = device_at(dev);
  return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : give_text(device->name, name, len);
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  const Device* device = device_at(dev);
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = device->gpu_uuid;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) {
  const Device* device = device_at(dev);
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = device->uuid;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetLuid(char*, unsigned int*, CUdevice) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  const Device* device = device_at(dev);
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = device->total_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice dev) {
  size_t all = 0;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = entry::cuDeviceTotalMem_v2(&all, dev);
  if (result == CUDA_SUCCESS) *bytes = all > UINT_MAX ? UINT_MAX : static_cast<unsigned int>(all);
  return result;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t* max_width_in_elements, CUarray_format format,
                                            unsigned num_channels, CUdevice dev) {
  const Device* device = device_at(dev);
  if (max_width_in_elements == nullptr || num_channels == 0 || num_channels > 4)
    return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  (void)format;
  const auto elements =
      static_cast<size_t>(value_of(*device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH)) *
      4;
  *max_width_in_elements = num_channels > 1 ? elements / 2 : elements;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop* prop, CUdevice dev) {
  const Device* device = device_at(dev);
  if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  prop->maxThreadsPerBlock = value_of(*device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  for (int i = 0; i < 3; ++i) {
    prop->maxThreadsDim[i] =
        value_of(*device, static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i));
    prop->maxGridSize[i] =
        value_of(*device, static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i));
  }
  prop->sharedMemPerBlock = value_of(*device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  prop->totalConstantMemory = value_of(*device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  prop->SIMDWidth = value_of(*device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  prop->memPitch = value_of(*device, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  prop->regsPerBlock = value_of(*device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  prop->clockRate = value_of(*device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  prop->textureAlign = value_of(*device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  const Device* device = device_at(dev);
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *major = static_cast<int>(device->card->cc_major);
  *minor = static_cast<int>(device->card->cc_minor);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* pci_bus_id, int len, CUdevice dev) {
  const Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  char text[32];
  snprintf(text, sizeof text, "%04x:%02x:%02x.%x", device->card->domain, device->card->bus & 0xffU,
           device->card->device & 0x1fU, device->card->function & 7U);
  const CUresult result = give_text(text, pci_bus_id, len);
  return result == CUDA_SUCCESS && static_cast<int>(strlen(text)) >= len ? CUDA_ERROR_INVALID_VALUE
                                                                         : result;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pci_bus_id) {
  if (dev == nullptr || pci_bus_id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  if (sscanf(pci_bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    domain = 0;
    if (sscanf(pci_bus_id, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  for (int i = 0; i < driver.device_count; ++i) {
    const gantry_sim_gpu& card = *driver.device[i].card;
    if (card.domain != domain || card.bus != bus || card.device != slot) continue;
    *dev = i;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int* can_access_peer, CUdevice dev, CUdevice peer_dev) {
  const Device* device = device_at(dev);
  const Device* peer = device_at(peer_dev);
  if (can_access_peer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr || peer == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *can_access_peer = can_access(*device, *peer) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute which, CUdevice src_device,
                                 CUdevice dst_device) {
  const Device* from = device_at(src_device);
  const Device* to = device_at(dst_device);
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (from == nullptr || to == nullptr || from == to) return CUDA_ERROR_INVALID_DEVICE;
  const bool access = can_access(*from, *to);
  const bool nvlink = access && from->card->nvlink_count > 0;
  switch (which) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: *value = nvlink ? 0 : 1; return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED: *value = access ? 1 : 0; return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
      *value = nvlink ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
      *value = access ? 1 : 0;
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// A part of the multiprocessors is available only under MPS.
CUresult cuDeviceGetExecAffinitySupport(int* value, CUexecAffinityType type, CUdevice dev) {
  if (value == nullptr || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
  if (device_at(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *value = is_mps_client() ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget,
                                    CUflushGPUDirectRDMAWritesScope) {
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
