// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/attributes.hpp"

#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/mps.hpp"

#include <limits.h>

namespace gantry::sim::cuda {
namespace {

constexpr Generation kGenerations[] = {
    // cc    threads blocks  shared  optin   regs   double copy L2/8
    {3, 0, 2048, 16, 49152, 49152, 65536, 24, 1, 0},
    {3, 5, 2048, 16, 49152, 49152, 65536, 3, 2, 0},
    {3, 7, 2048, 16, 114688, 49152, 131072, 3, 2, 0},
    {5, 0, 2048, 32, 65536, 49152, 65536, 32, 1, 0},
    {5, 2, 2048, 32, 98304, 49152, 65536, 32, 2, 0},
    {6, 0, 2048, 32, 65536, 49152, 65536, 2, 2, 0},
    {6, 1, 2048, 32, 98304, 49152, 65536, 32, 2, 0},
    {7, 0, 2048, 32, 98304, 98304, 65536, 2, 5, 0},
    {7, 5, 1024, 16, 65536, 65536, 65536, 32, 3, 0},
    {8, 0, 2048, 32, 167936, 166912, 65536, 2, 3, 6},
    {8, 6, 1536, 16, 102400, 101376, 65536, 64, 2, 6},
    {8, 9, 1536, 24, 102400, 101376, 65536, 64, 2, 6},
    {9, 0, 2048, 32, 233472, 232448, 65536, 2, 3, 5},
    {10, 0, 2048, 32, 233472, 232448, 65536, 2, 4, 5},
    {12, 0, 1536, 24, 102400, 101376, 65536, 64, 2, 5},
};

// The last attribute of each release.
struct Release {
  int cuda;
  int newest;
};
constexpr Release kReleases[] = {
    {13000, 147}, {12080, 143}, {12020, 134}, {12010, 132}, {12000, 129},
    {11070, 124}, {11030, 119}, {11020, 115}, {11000, 111}, {10020, 105},
    {9020, 101},  {9000, 98},   {8000, 91},   {0, 86},
};

int newest_attribute() {
  for (const Release& release : kReleases) {
    if (static_cast<int>(driver.machine->cuda_version) >= release.cuda) return release.newest;
  }
  return 0;
}

struct Limits {
  int texture_1d, texture_2d_width, texture_2d_height, texture_3d, alternate_width, alternate_depth;
  int layered, linear_1d, linear_2d_width, linear_2d_height, linear_2d_pitch;
  int surface_1d, surface_2d_width, surface_2d_height, surface_3d_width, surface_3d_height,
      surface_3d_depth, surface_layered_width, surface_layered_height, surface_cubemap;
};
constexpr Limits kKepler = {65536,     65536, 65536, 4096,    2048,  16384, 16384,
                            134217728, 65000, 65000, 1048544, 65536, 65536, 32768,
                            65536,     32768, 2048,  65536,   32768, 32768};
constexpr Limits kMaxwell = {65536,     65536, 65536, 4096,    2048,  16384, 16384,
                             134217728, 65000, 65000, 1048544, 16384, 65536, 65536,
                             4096,      4096,  4096,  16384,   16384, 16384};
constexpr Limits kPascalOn = {131072,    131072, 65536, 16384,   8192,  32768,  32768,
                              268435456, 131072, 65000, 2097120, 32768, 131072, 65536,
                              16384,     16384,  16384, 32768,   32768, 32768};

const Limits& limits_of(const Device& device) {
  if (device.card->cc_major < 5) return kKepler;
  return device.card->cc_major < 6 ? kMaxwell : kPascalOn;
}

#define A(name) CU_DEVICE_ATTRIBUTE_##name

// Textures and surfaces.
bool texture_attribute(const Device& device, CUdevice_attribute which, int& value) {
  const Limits& limits = limits_of(device);
  switch (which) {
    case A(MAXIMUM_TEXTURE1D_WIDTH): value = limits.texture_1d; return true;
    case A(MAXIMUM_TEXTURE2D_WIDTH): value = limits.texture_2d_width; return true;
    case A(MAXIMUM_TEXTURE2D_HEIGHT): value = limits.texture_2d_height; return true;
    case A(MAXIMUM_TEXTURE3D_WIDTH):
    case A(MAXIMUM_TEXTURE3D_HEIGHT):
    case A(MAXIMUM_TEXTURE3D_DEPTH): value = limits.texture_3d; return true;
    case A(MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE):
    case A(MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE): value = limits.alternate_width; return true;
    case A(MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE): value = limits.alternate_depth; return true;
    case A(MAXIMUM_TEXTURE1D_LAYERED_WIDTH):
    case A(MAXIMUM_TEXTURE2D_LAYERED_WIDTH):
    case A(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT):
    case A(MAXIMUM_TEXTURE2D_GATHER_WIDTH):
    case A(MAXIMUM_TEXTURE2D_GATHER_HEIGHT):
    case A(MAXIMUM_TEXTURECUBEMAP_WIDTH):
    case A(MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH):
    case A(MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH):
    case A(MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH):
    case A(MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT): value = limits.layered; return true;
    case A(MAXIMUM_TEXTURE1D_LAYERED_LAYERS):
    case A(MAXIMUM_TEXTURE2D_LAYERED_LAYERS):
    case A(MAXIMUM_SURFACE1D_LAYERED_LAYERS):
    case A(MAXIMUM_SURFACE2D_LAYERED_LAYERS): value = 2048; return true;
    case A(MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS):
    case A(MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS): value = 2046; return true;
    case A(MAXIMUM_TEXTURE1D_LINEAR_WIDTH): value = limits.linear_1d; return true;
    case A(MAXIMUM_TEXTURE2D_LINEAR_WIDTH): value = limits.linear_2d_width; return true;
    case A(MAXIMUM_TEXTURE2D_LINEAR_HEIGHT): value = limits.linear_2d_height; return true;
    case A(MAXIMUM_TEXTURE2D_LINEAR_PITCH): value = limits.linear_2d_pitch; return true;
    case A(MAXIMUM_SURFACE1D_WIDTH): value = limits.surface_1d; return true;
    case A(MAXIMUM_SURFACE2D_WIDTH): value = limits.surface_2d_width; return true;
    case A(MAXIMUM_SURFACE2D_HEIGHT): value = limits.surface_2d_height; return true;
    case A(MAXIMUM_SURFACE3D_WIDTH): value = limits.surface_3d_width; return true;
    case A(MAXIMUM_SURFACE3D_HEIGHT): value = limits.surface_3d_height; return true;
    case A(MAXIMUM_SURFACE3D_DEPTH): value = limits.surface_3d_depth; return true;
    case A(MAXIMUM_SURFACE1D_LAYERED_WIDTH):
    case A(MAXIMUM_SURFACE2D_LAYERED_WIDTH): value = limits.surface_layered_width; return true;
    case A(MAXIMUM_SURFACE2D_LAYERED_HEIGHT): value = limits.surface_layered_height; return true;
    case A(MAXIMUM_SURFACECUBEMAP_WIDTH):
    case A(MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH): value = limits.surface_cubemap; return true;
    case A(TEXTURE_ALIGNMENT):
    case A(SURFACE_ALIGNMENT): value = 512; return true;
    case A(TEXTURE_PITCH_ALIGNMENT): value = 32; return true;
    case A(CAN_TEX2D_GATHER): value = 1; return true;
    default: return false;
  }
}

// Most cards run as fast as NVML says. Where CUDA reports another clock, the card's YAML has it.
int clock_khz(const Device& device) {
  const auto said =
      strtoul(gantry_sim_field(static_cast<int32_t>(device.gpu), "cuda.clock_khz"), nullptr, 10);
  return static_cast<int>(said != 0 ? said : device.card->clock_sm_max * 1000UL);
}

// Numbers of this card.
bool card_attribute(const Device& device, CUdevice_attribute which, int& value) {
  const gantry_sim_gpu& card = *device.card;
  const Generation& generation = generation_of(device);
  switch (which) {
    case A(CLOCK_RATE): value = clock_khz(device); return true;
    case A(MEMORY_CLOCK_RATE): value = static_cast<int>(card.clock_memory_max * 1000); return true;
    case A(GLOBAL_MEMORY_BUS_WIDTH): value = static_cast<int>(card.memory_bus_bits); return true;
    case A(L2_CACHE_SIZE): value = static_cast<int>(card.l2_cache_bytes); return true;
    case A(MULTIPROCESSOR_COUNT): value = static_cast<int>(device.multiprocessors); return true;
    case A(MPS_ENABLED): value = is_mps_client() ? 1 : 0; return true;
    case A(COMPUTE_CAPABILITY_MAJOR): value = static_cast<int>(card.cc_major); return true;
    case A(COMPUTE_CAPABILITY_MINOR): value = static_cast<int>(card.cc_minor); return true;
    case A(COMPUTE_MODE): value = static_cast<int>(compute_mode_of(device)); return true;
    case A(ECC_ENABLED): value = card.ecc_supported > 0 ? 1 : 0; return true;
    case A(KERNEL_EXEC_TIMEOUT): value = card.display_active > 0 ? 1 : 0; return true;
    case A(PCI_BUS_ID): value = static_cast<int>(card.bus); return true;
    case A(PCI_DEVICE_ID): value = static_cast<int>(card.device); return true;
    case A(PCI_DOMAIN_ID): value = static_cast<int>(card.domain); return true;
    case A(GPU_PCI_DEVICE_ID): value = static_cast<int>(card.pci_id); return true;
    case A(GPU_PCI_SUBSYSTEM_ID): value = static_cast<int>(card.pci_subsystem); return true;
    case A(HOST_NUMA_ID): value = card.numa_node < 0 ? 0 : card.numa_node; return true;
    case A(MAX_PERSISTING_L2_CACHE_SIZE):
      value = static_cast<int>(card.l2_cache_bytes / 8) * generation.persisting_eighths;
      return true;
    case A(MULTI_GPU_BOARD_GROUP_ID): value = static_cast<int>(device.gpu); return true;
    case A(MAX_THREADS_PER_MULTIPROCESSOR):
      value = generation.threads_per_multiprocessor;
      return true;
    case A(MAX_BLOCKS_PER_MULTIPROCESSOR):
      value = generation.blocks_per_multiprocessor;
      return true;
    case A(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR):
      value = generation.shared_per_multiprocessor;
      return true;
    case A(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN): value = generation.shared_optin; return true;
    case A(MAX_REGISTERS_PER_MULTIPROCESSOR):
      value = generation.registers_per_multiprocessor;
      return true;
    case A(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO): value = generation.double_ratio; return true;
    case A(ASYNC_ENGINE_COUNT): value = generation.copy_engines; return true;
    case A(MULTI_GPU_BOARD): {
      value = 0;
      for (int i = 0; i < driver.device_count; ++i) {
        const Device& other = driver.device[i];
        if (other.gpu != device.gpu && card.board_id != 0 && other.card->board_id == card.board_id)
          value = 1;
      }
      return true;
    }
    default: return false;
  }
}

// The same for all cards, or from some compute capability on (10 * major + minor).
struct Feature {
  CUdevice_attribute which;
  int from;
  int value;
};
constexpr Feature kFeatures[] = {
    {A(MAX_THREADS_PER_BLOCK), 0, 1024},
    {A(MAX_BLOCK_DIM_X), 0, 1024},
    {A(MAX_BLOCK_DIM_Y), 0, 1024},
    {A(MAX_BLOCK_DIM_Z), 0, 64},
    {A(MAX_GRID_DIM_X), 0, INT_MAX},
    {A(MAX_GRID_DIM_Y), 0, 65535},
    {A(MAX_GRID_DIM_Z), 0, 65535},
    {A(MAX_SHARED_MEMORY_PER_BLOCK), 0, 49152},
    {A(TOTAL_CONSTANT_MEMORY), 0, 65536},
    {A(WARP_SIZE), 0, 32},
    {A(MAX_PITCH), 0, INT_MAX},
    {A(MAX_REGISTERS_PER_BLOCK), 0, 65536},
    {A(GPU_OVERLAP), 0, 1},
    {A(CAN_MAP_HOST_MEMORY), 0, 1},
    {A(CONCURRENT_KERNELS), 0, 1},
    {A(UNIFIED_ADDRESSING), 0, 1},
    {A(STREAM_PRIORITIES_SUPPORTED), 35, 1},
    {A(GLOBAL_L1_CACHE_SUPPORTED), 35, 1},
    {A(LOCAL_L1_CACHE_SUPPORTED), 0, 1},
    {A(MANAGED_MEMORY), 0, 1},
    {A(CONCURRENT_MANAGED_ACCESS), 60, 1},
    {A(COMPUTE_PREEMPTION_SUPPORTED), 60, 1},
    {A(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM), 60, 1},
    {A(COOPERATIVE_LAUNCH), 60, 1},
    {A(COOPERATIVE_MULTI_DEVICE_LAUNCH), 60, 1},
    {A(HOST_REGISTER_SUPPORTED), 0, 1},
    {A(VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED), 50, 1},
    {A(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED), 50, 1},
    {A(GENERIC_COMPRESSION_SUPPORTED), 80, 1},
    {A(MAX_ACCESS_POLICY_WINDOW_SIZE), 80, 134217728},
    {A(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED), 70, 1},
    {A(RESERVED_SHARED_MEMORY_PER_BLOCK), 80, 1024},
    {A(SPARSE_CUDA_ARRAY_SUPPORTED), 60, 1},
    {A(READ_ONLY_HOST_REGISTER_SUPPORTED), 0, 1},
    {A(TIMELINE_SEMAPHORE_INTEROP_SUPPORTED), 60, 1},
    {A(MEMORY_POOLS_SUPPORTED), 60, 1},
    {A(GPU_DIRECT_RDMA_SUPPORTED), 50, 1},
    {A(GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS), 50, 1},
    {A(GPU_DIRECT_RDMA_WRITES_ORDERING), 70, 100},
    {A(MEMPOOL_SUPPORTED_HANDLE_TYPES), 90, 9},
    {A(MEMPOOL_SUPPORTED_HANDLE_TYPES), 60, 1},
    {A(CLUSTER_LAUNCH), 90, 1},
    {A(DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED), 60, 1},
    {A(CAN_USE_64_BIT_STREAM_MEM_OPS), 70, 1},
    {A(CAN_USE_STREAM_WAIT_VALUE_NOR), 70, 1},
    {A(DMA_BUF_SUPPORTED), 70, 1},
    {A(IPC_EVENT_SUPPORTED), 0, 1},
    {A(MEM_SYNC_DOMAIN_COUNT), 90, 4},
    {A(MEM_SYNC_DOMAIN_COUNT), 0, 1},
    {A(TENSOR_MAP_ACCESS_SUPPORTED), 90, 1},
    {A(HANDLE_TYPE_FABRIC_SUPPORTED), 90, 1},
    {A(UNIFIED_FUNCTION_POINTERS), 0, 1},
    {A(NUMA_ID), 0, -1},
    {A(HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 60, 1},
    {A(HOST_NUMA_MEMORY_POOLS_SUPPORTED), 60, 1},
    {A(HOST_MEMORY_POOLS_SUPPORTED), 60, 1},
    {A(HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 60, 1},
};
#undef A

int feature(const Device& device, CUdevice_attribute which) {
  const int capability = static_cast<int>(device.card->cc_major * 10 + device.card->cc_minor);
  for (const Feature& row : kFeatures) {
    if (row.which == which && capability >= row.from) return row.value;
  }
  return 0;
}

}  // namespace

// The newest row that is not newer than the card.
const Generation& generation_of(const Device& device) {
  const Generation* best = &kGenerations[0];
  for (const Generation& row : kGenerations) {
    if (row.major < device.card->cc_major ||
        (row.major == device.card->cc_major && row.minor <= device.card->cc_minor))
      best = &row;
  }
  return *best;
}

bool attribute(const Device& device, CUdevice_attribute which, int& value) {
  if (static_cast<int>(which) < 1 || static_cast<int>(which) > newest_attribute()) return false;
  if (!texture_attribute(device, which, value) && !card_attribute(device, which, value))
    value = feature(device, which);
  return true;
}

namespace entry {

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice dev) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return attribute(*device, which, *value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
