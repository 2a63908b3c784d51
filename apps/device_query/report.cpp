// SPDX-License-Identifier: Apache-2.0
#include "device_query/device_query.hpp"
#include "device_query/report_internal.hpp"

#include <fmt/format.h>

#define A(name) CU_DEVICE_ATTRIBUTE_##name

namespace gantry::workload {
namespace {

struct Cores {
  int major, minor, cores;
};
constexpr Cores kCores[] = {
    {3, 0, 192}, {3, 2, 192}, {3, 5, 192}, {3, 7, 192}, {5, 0, 128},  {5, 2, 128},  {5, 3, 128},
    {6, 0, 64},  {6, 1, 128}, {6, 2, 128}, {7, 0, 64},  {7, 2, 64},   {7, 5, 64},   {8, 0, 64},
    {8, 6, 128}, {8, 7, 128}, {8, 9, 128}, {9, 0, 128}, {10, 0, 128}, {10, 3, 128}, {12, 0, 128},
};

constexpr const char* kComputeModes[] = {
    "Default (multiple host threads can use ::cudaSetDevice() with device simultaneously)",
    "Exclusive (only one host thread in one process is able to use ::cudaSetDevice() with this "
    "device)",
    "Prohibited (no host thread can use ::cudaSetDevice() with this device)",
    "Exclusive Process (many threads in one process is able to use ::cudaSetDevice() with this "
    "device)",
};

// The columns of NVIDIA's samples, whose lines these are: the label is 49 characters wide. Where a
// sample aligns differently, so does this file (tests/gpu/samples.py compares).
template <class... Arguments>
void line(std::FILE* out, const char* label, fmt::format_string<Arguments...> format,
          Arguments&&... arguments) {
  fmt::print(out, "  {:<47}{}\n", label,
             fmt::format(format, std::forward<Arguments>(arguments)...));
}

const char* yes_no(int value) {
  return value != 0 ? "Yes" : "No";
}

void print_card(const Report& report, Sample sample, std::FILE* out) {
  const int major = report[A(COMPUTE_CAPABILITY_MAJOR)];
  const int minor = report[A(COMPUTE_CAPABILITY_MINOR)];
  const int multiprocessors = report[A(MULTIPROCESSOR_COUNT)];
  const int cores = cores_per_multiprocessor(major, minor);
  const std::string version = version_text(report.driver_version);
  if (sample == Sample::DeviceQuery) {
    line(out, "CUDA Driver Version / Runtime Version", "{} / none", version);
  } else {
    line(out, "CUDA Driver Version:", "{}", version);
  }
  line(out, "CUDA Capability Major/Minor version number:", "{}.{}", major, minor);
  line(out, "Total amount of global memory:", "{:.0f} MBytes ({} bytes)",
       static_cast<double>(report.total_bytes) / 1048576.0, report.total_bytes);
  if (sample == Sample::DeviceQuery) {
    fmt::print(out, "  ({:03}) Multiprocessors, ({:03}) CUDA Cores/MP:    {} CUDA Cores\n",
               multiprocessors, cores, cores * multiprocessors);
  } else {
    fmt::print(out, "  ({:2}) Multiprocessors, ({:3}) CUDA Cores/MP:     {} CUDA Cores\n",
               multiprocessors, cores, cores * multiprocessors);
  }
  line(out, "GPU Max Clock rate:", "{:.0f} MHz ({:0.2f} GHz)", report[A(CLOCK_RATE)] * 1e-3,
       report[A(CLOCK_RATE)] * 1e-6);
  line(out, "Memory Clock rate:", "{:.0f} Mhz", report[A(MEMORY_CLOCK_RATE)] * 1e-3);
  line(out, "Memory Bus Width:", "{}-bit", report[A(GLOBAL_MEMORY_BUS_WIDTH)]);
  if (report[A(L2_CACHE_SIZE)] != 0)
    line(out, "L2 Cache Size:", "{} bytes", report[A(L2_CACHE_SIZE)]);
}

void print_textures(const Report& report, Sample sample, std::FILE* out) {
  const bool runtime = sample == Sample::DeviceQuery;
  line(out, runtime ? "Maximum Texture Dimension Size (x,y,z)" : "Max Texture Dimension Sizes",
       "1D=({}){} 2D=({}, {}){} 3D=({}, {}, {})", report[A(MAXIMUM_TEXTURE1D_WIDTH)],
       runtime ? "," : "", report[A(MAXIMUM_TEXTURE2D_WIDTH)], report[A(MAXIMUM_TEXTURE2D_HEIGHT)],
       runtime ? "," : "", report[A(MAXIMUM_TEXTURE3D_WIDTH)], report[A(MAXIMUM_TEXTURE3D_HEIGHT)],
       report[A(MAXIMUM_TEXTURE3D_DEPTH)]);
  line(out, "Maximum Layered 1D Texture Size, (num) layers", "1D=({}), {} layers",
       report[A(MAXIMUM_TEXTURE1D_LAYERED_WIDTH)], report[A(MAXIMUM_TEXTURE1D_LAYERED_LAYERS)]);
  line(out, "Maximum Layered 2D Texture Size, (num) layers", "2D=({}, {}), {} layers",
       report[A(MAXIMUM_TEXTURE2D_LAYERED_WIDTH)], report[A(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT)],
       report[A(MAXIMUM_TEXTURE2D_LAYERED_LAYERS)]);
}

void print_limits(const Report& report, Sample sample, std::FILE* out) {
  line(out, "Total amount of constant memory:", "{} bytes", report[A(TOTAL_CONSTANT_MEMORY)]);
  line(out, "Total amount of shared memory per block:", "{} bytes",
       report[A(MAX_SHARED_MEMORY_PER_BLOCK)]);
  if (sample == Sample::DeviceQuery) {
    line(out, "Total shared memory per multiprocessor:", "{} bytes",
         report[A(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)]);
  }
  line(out, "Total number of registers available per block:", "{}",
       report[A(MAX_REGISTERS_PER_BLOCK)]);
  line(out, "Warp size:", "{}", report[A(WARP_SIZE)]);
  line(out, "Maximum number of threads per multiprocessor:", "{}",
       report[A(MAX_THREADS_PER_MULTIPROCESSOR)]);
  line(out, "Maximum number of threads per block:", "{}", report[A(MAX_THREADS_PER_BLOCK)]);
  fmt::print(out, "  Max dimension size of a thread block (x,y,z): ({}, {}, {})\n",
             report[A(MAX_BLOCK_DIM_X)], report[A(MAX_BLOCK_DIM_Y)], report[A(MAX_BLOCK_DIM_Z)]);
  fmt::print(out, "  Max dimension size of a grid size {} ({}, {}, {})\n",
             sample == Sample::DeviceQuery ? "   (x,y,z):" : "(x,y,z):   ",
             report[A(MAX_GRID_DIM_X)], report[A(MAX_GRID_DIM_Y)], report[A(MAX_GRID_DIM_Z)]);
  if (sample == Sample::DeviceQueryDrv)
    line(out, "Texture alignment:", "{} bytes", report[A(TEXTURE_ALIGNMENT)]);
  line(out, "Maximum memory pitch:", "{} bytes", report[A(MAX_PITCH)]);
  if (sample == Sample::DeviceQuery)
    line(out, "Texture alignment:", "{} bytes", report[A(TEXTURE_ALIGNMENT)]);
}

void print_abilities(const Report& report, Sample sample, std::FILE* out) {
  line(out, "Concurrent copy and kernel execution:", "{} with {} copy engine(s)",
       yes_no(report[A(GPU_OVERLAP)]), report[A(ASYNC_ENGINE_COUNT)]);
  line(out, "Run time limit on kernels:", "{}", yes_no(report[A(KERNEL_EXEC_TIMEOUT)]));
  line(out, "Integrated GPU sharing Host Memory:", "{}", yes_no(report[A(INTEGRATED)]));
  line(out, "Support host page-locked memory mapping:", "{}",
       yes_no(report[A(CAN_MAP_HOST_MEMORY)]));
  if (sample == Sample::DeviceQueryDrv)
    line(out, "Concurrent kernel execution:", "{}", yes_no(report[A(CONCURRENT_KERNELS)]));
  line(out, "Alignment requirement for Surfaces:", "{}", yes_no(report[A(SURFACE_ALIGNMENT)]));
  line(out, "Device has ECC support:", "{}", report[A(ECC_ENABLED)] != 0 ? "Enabled" : "Disabled");
  line(out, "Device supports Unified Addressing (UVA):", "{}",
       yes_no(report[A(UNIFIED_ADDRESSING)]));
  line(out, "Device supports Managed Memory:", "{}", yes_no(report[A(MANAGED_MEMORY)]));
  line(out, "Device supports Compute Preemption:", "{}",
       yes_no(report[A(COMPUTE_PREEMPTION_SUPPORTED)]));
  line(out, "Supports Cooperative Kernel Launch:", "{}", yes_no(report[A(COOPERATIVE_LAUNCH)]));
  if (sample == Sample::DeviceQueryDrv) {
    line(out, "Supports MultiDevice Co-op Kernel Launch:", "{}",
         yes_no(report[A(COOPERATIVE_MULTI_DEVICE_LAUNCH)]));
  }
  line(out, "Device PCI Domain ID / Bus ID / location ID:", "{} / {} / {}",
       report[A(PCI_DOMAIN_ID)], report[A(PCI_BUS_ID)], report[A(PCI_DEVICE_ID)]);
  const int mode = report[A(COMPUTE_MODE)];
  fmt::print(out, "  Compute Mode:\n     < {} >\n",
             mode >= 0 && mode < 4 ? kComputeModes[mode] : "Unknown");
}

}  // namespace

int cores_per_multiprocessor(int major, int minor) {
  for (const Cores& row : kCores) {
    if (row.major == major && row.minor == minor) return row.cores;
  }
  return 0;
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 100 / 10);
}

void print_report(const Report& report, Sample sample, std::FILE* out) {
  fmt::print(out, "\nDevice {}: \"{}\"\n", report.ordinal, report.name);
  print_card(report, sample, out);
  print_textures(report, sample, out);
  print_limits(report, sample, out);
  print_abilities(report, sample, out);
}

}  // namespace gantry::workload
