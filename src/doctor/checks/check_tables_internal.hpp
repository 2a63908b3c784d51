// SPDX-License-Identifier: Apache-2.0
// The tables that make up all_checks(), one for each file.
#pragma once

#include "doctor/engine/check.hpp"
#include "doctor/engine/fix_steps.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace gantry::doctor {

inline constexpr std::string_view kToolkitConfig = "/etc/nvidia-container-runtime/config.toml";

// The fix for an engine whose nvidia runtime is missing.
Steps install_toolkit(const Facts& f);
// The same as commands for a person; `engine` as --runtime names it.
std::string install_toolkit_command(const Facts& f, std::string_view engine);

// The vGPU host driver is loaded. It has NVML for its own tools, but neither CUDA nor nvidia_uvm:
// their absence is no fault there.
bool is_vgpu_host(const Facts& f);

std::span<const Check> guest_checks();
std::span<const Check> vgpu_checks();
std::span<const Check> pci_checks();
std::span<const Check> pci_state_checks();
std::span<const Check> binding_checks();
std::span<const Check> iommu_checks();
std::span<const Check> numa_checks();
std::span<const Check> module_checks();
std::span<const Check> install_checks();
std::span<const Check> log_checks();
std::span<const Check> gpu_checks();
std::span<const Check> recovery_checks();
std::span<const Check> sharing_checks();
std::span<const Check> share_checks();
std::span<const Check> ownership_checks();
std::span<const Check> node_checks();
std::span<const Check> access_checks();
std::span<const Check> library_checks();
std::span<const Check> tool_checks();
std::span<const Check> service_checks();
std::span<const Check> limit_checks();
std::span<const Check> docker_checks();
std::span<const Check> toolkit_checks();
std::span<const Check> cri_checks();
std::span<const Check> crio_checks();
std::span<const Check> cdi_checks();
std::span<const Check> kubelet_checks();
std::span<const Check> cluster_checks();
std::span<const Check> fabric_checks();
std::span<const Check> nvlink_checks();

inline auto areas() {
  return std::array{guest_checks(),   vgpu_checks(),     pci_checks(),     pci_state_checks(),
                    binding_checks(), iommu_checks(),    numa_checks(),    module_checks(),
                    install_checks(), log_checks(),      gpu_checks(),     recovery_checks(),
                    sharing_checks(), node_checks(),     access_checks(),  library_checks(),
                    tool_checks(),    service_checks(),  limit_checks(),   docker_checks(),
                    toolkit_checks(), cri_checks(),      crio_checks(),    cdi_checks(),
                    share_checks(),   kubelet_checks(),  cluster_checks(), fabric_checks(),
                    nvlink_checks(),  ownership_checks()};
}

}  // namespace gantry::doctor
