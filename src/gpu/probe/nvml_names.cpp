// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/nvml_names.hpp"

#include <fmt/format.h>

namespace gantry::probe {

std::string_view brand_name(nvmlBrandType_t brand) {
  switch (brand) {
    case NVML_BRAND_QUADRO: return "Quadro";
    case NVML_BRAND_TESLA: return "Tesla";
    case NVML_BRAND_NVS: return "NVS";
    case NVML_BRAND_GRID: return "GRID";
    case NVML_BRAND_GEFORCE: return "GeForce";
    case NVML_BRAND_TITAN: return "Titan";
    case NVML_BRAND_NVIDIA_VAPPS: return "NVIDIA Virtual Applications";
    case NVML_BRAND_NVIDIA_VPC: return "NVIDIA Virtual PC";
    case NVML_BRAND_NVIDIA_VCS: return "NVIDIA Virtual Compute Server";
    case NVML_BRAND_NVIDIA_VWS: return "NVIDIA RTX Virtual Workstation";
    case NVML_BRAND_NVIDIA_CLOUD_GAMING: return "NVIDIA Cloud Gaming";
    case NVML_BRAND_QUADRO_RTX: return "Quadro RTX";
    case NVML_BRAND_NVIDIA_RTX: return "NVIDIA RTX";
    case NVML_BRAND_NVIDIA: return "NVIDIA";
    case NVML_BRAND_GEFORCE_RTX: return "GeForce RTX";
    case NVML_BRAND_TITAN_RTX: return "Titan RTX";
    default: return "";
  }
}

std::string_view architecture_name(nvmlDeviceArchitecture_t architecture) {
  switch (architecture) {
    case NVML_DEVICE_ARCH_KEPLER: return "Kepler";
    case NVML_DEVICE_ARCH_MAXWELL: return "Maxwell";
    case NVML_DEVICE_ARCH_PASCAL: return "Pascal";
    case NVML_DEVICE_ARCH_VOLTA: return "Volta";
    case NVML_DEVICE_ARCH_TURING: return "Turing";
    case NVML_DEVICE_ARCH_AMPERE: return "Ampere";
    case NVML_DEVICE_ARCH_ADA: return "Ada Lovelace";
    case NVML_DEVICE_ARCH_HOPPER: return "Hopper";
    case NVML_DEVICE_ARCH_BLACKWELL: return "Blackwell";
    default: return "";
  }
}

std::string_view architecture_of(const model::ComputeCapability& capability) {
  switch (capability.major) {
    case 2: return "Fermi";
    case 3: return "Kepler";
    case 5: return "Maxwell";
    case 6: return "Pascal";
    case 7: return capability.minor >= 5 ? "Turing" : "Volta";
    case 8: return capability.minor == 9 ? "Ada Lovelace" : "Ampere";
    case 9: return "Hopper";
    case 10:
    case 12: return "Blackwell";
    default: return "";
  }
}

std::string_view compute_mode_name(nvmlComputeMode_t mode) {
  switch (mode) {
    case NVML_COMPUTEMODE_DEFAULT: return "Default";
    case NVML_COMPUTEMODE_EXCLUSIVE_THREAD: return "Exclusive_Thread";
    case NVML_COMPUTEMODE_PROHIBITED: return "Prohibited";
    case NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: return "Exclusive_Process";
    default: return "";
  }
}

std::string_view virtualization_name(nvmlGpuVirtualizationMode_t mode) {
  switch (mode) {
    case NVML_GPU_VIRTUALIZATION_MODE_NONE: return "None";
    case NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH: return "Pass-Through";
    case NVML_GPU_VIRTUALIZATION_MODE_VGPU: return "VGPU";
    case NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU: return "Host VGPU";
    case NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA: return "Host VSGA";
    default: return "";
  }
}

model::PciePath to_pcie_path(nvmlGpuTopologyLevel_t level) {
  switch (level) {
    case NVML_TOPOLOGY_INTERNAL: return model::PciePath::SameBoard;
    case NVML_TOPOLOGY_SINGLE: return model::PciePath::SingleSwitch;
    case NVML_TOPOLOGY_MULTIPLE: return model::PciePath::MultiSwitch;
    case NVML_TOPOLOGY_HOSTBRIDGE: return model::PciePath::HostBridge;
    case NVML_TOPOLOGY_NODE: return model::PciePath::Node;
    case NVML_TOPOLOGY_SYSTEM: return model::PciePath::System;
    default: return model::PciePath::Unknown;
  }
}

std::string format_cuda_version(int version) {
  if (version < 1000 || version > 999'000) return "";
  return fmt::format("{}.{}", NVML_CUDA_DRIVER_VERSION_MAJOR(version),
                     NVML_CUDA_DRIVER_VERSION_MINOR(version));
}

std::string driver_part_of_nvml_version(std::string_view version) {
  const auto dot = version.find('.');
  return dot == std::string_view::npos ? "" : std::string(version.substr(dot + 1));
}

std::string mig_profile_name(unsigned gpu_slices, unsigned compute_slices, std::uint64_t memory_mib,
                             std::uint64_t gpu_memory_bytes) {
  const auto gpu_mib = gpu_memory_bytes >> 20U;
  if (gpu_slices == 0 || gpu_mib == 0 || memory_mib > gpu_mib) return "";
  // The profile's share in eighths of the GPU, of its memory in whole GiB, rounded half up.
  const auto eighths = (8 * memory_mib + gpu_mib - 1) / gpu_mib;
  const auto gib = (gpu_memory_bytes + (1ULL << 30U) - 1) >> 30U;
  const auto size = (eighths * gib + 4) / 8;
  const auto whole = fmt::format("{}g.{}gb", gpu_slices, size);
  const bool all = compute_slices == 0 || compute_slices >= gpu_slices;
  return all ? whole : fmt::format("{}c.{}", compute_slices, whole);
}

}  // namespace gantry::probe
