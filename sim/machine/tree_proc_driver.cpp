// SPDX-License-Identifier: Apache-2.0
// /proc/driver/nvidia: the files of the kernel module.
#include "sim/machine/image.hpp"
#include "sim/machine/mig.hpp"
#include "sim/machine/tree_internal.hpp"

#include <fmt/format.h>

namespace gantry::sim {
namespace {

constexpr std::string_view kPower =
    "Runtime D3 status:          Disabled by default\n"
    "Video Memory:               Active\n\n"
    "GPU Hardware Support:\n"
    " Video Memory Self Refresh: Not Supported\n"
    " Video Memory Off:          Not Supported\n\n"
    "S0ix Power Management:\n"
    " Platform Support:          Not Supported\n"
    " Status:                    Disabled\n\n"
    "Notebook Dynamic Boost:     Not Supported\n";

// The driver has its own text for these two files; readers only need some text.
constexpr std::string_view kPatches =
    "Patches applied to this driver's kernel interface are listed here, one file each.\n";
constexpr std::string_view kWarnings =
    "Problems that the driver found with this host are listed here.\n";

std::string information(const Driver& d, const Gpu& gpu) {
  const auto branch = driver_major(d.module_version);
  const auto mask = gpu.pci.dma_bits >= 64 ? ~0ULL : (1ULL << gpu.pci.dma_bits) - 1;
  auto lower = [](std::string text) {
    for (auto& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return text;
  };
  std::string text =
      fmt::format("Model: \t\t {}\nIRQ:   \t\t {}\nGPU UUID: \t {}\nVideo BIOS: \t {}\n", gpu.name,
                  gpu.pci.irq, gpu.uuid, lower(gpu.vbios));
  text += fmt::format("Bus Type: \t PCIe\nDMA Size: \t {} bits\nDMA Mask: \t 0x{:x}\n",
                      gpu.pci.dma_bits, mask);
  text +=
      fmt::format("Bus Location: \t {}\nDevice Minor: \t {}\n", gpu.pci.address.sysfs(), gpu.minor);
  if (branch >= 470)
    text += fmt::format("GPU Firmware: \t {}\n", gpu.gsp ? d.module_version : "N/A");
  const char* answer = gpu.excluded ? "Yes" : "No";
  if (branch >= 455) {
    text += fmt::format("GPU Excluded:\t {}\n", answer);
  } else if (branch >= 410) {
    text += fmt::format("Blacklisted:\t {}\n", answer);
  }
  return text;
}

std::string capability(std::uint32_t minor, unsigned mode) {
  return fmt::format("DeviceFileMinor: {}\nDeviceFileMode: {}\nDeviceFileModify: 1\n", minor, mode);
}

std::string capability_node(std::uint32_t minor) {
  return fmt::format("/dev/nvidia-caps/nvidia-cap{}", minor);
}

void write_capabilities(TreeWriter& out, const Machine& m) {
  constexpr std::uint32_t kAfterMigMinors = 4323;  // fabric-imex-mgmt follows 32 GPUs' MIG minors
  if (m.driver.caps_major == 0) return;
  const std::string base = "/proc/driver/nvidia/capabilities";
  out.file(base + "/mig/config", capability(1, 0400));
  out.file(base + "/mig/monitor", capability(2, 0444));
  out.file("/proc/driver/nvidia-caps/mig-minors", mig_minors_file());
  if (m.driver.imex_major != 0) {
    out.file(base + "/fabric-imex-mgmt", capability(kAfterMigMinors, 0400));
    out.file("/proc/driver/nvidia-caps/sys-minors",
             fmt::format("fabric-imex-mgmt {}\n", kAfterMigMinors));
  }
  for (const auto& gpu : m.gpus) {
    if (gpu.mig_capable && gpu.pci.driver == "nvidia")
      out.directory(fmt::format("{}/gpu{}/mig", base, gpu.minor));
  }
}

}  // namespace

std::string driver_version_text(const Driver& d) {
  const auto* kind = d.flavour == Flavour::Open ? "NVIDIA UNIX Open Kernel Module for x86_64"
                                                : "NVIDIA UNIX x86_64 Kernel Module";
  return fmt::format("NVRM version: {}  {}  {}\nGCC version:  {}\n", kind, d.module_version,
                     d.build, d.compiler);
}

std::string driver_params_text(const Machine& m) {
  std::string text;
  for (const auto& [key, value] : m.driver.params) {
    std::string shown = value;
    if (key == "DeviceFileUID") shown = fmt::to_string(m.nodes.uid);
    if (key == "DeviceFileGID") shown = fmt::to_string(m.nodes.gid);
    if (key == "DeviceFileMode")
      shown = fmt::to_string(m.nodes.mode);  // decimal, as the driver prints it
    text += fmt::format("{}: {}\n", key, shown);
  }
  return text;
}

bool driver_loaded(const Machine& machine) {
  return !machine.driver.module_version.empty();
}

void write_proc_driver(TreeWriter& out, const Machine& m) {
  if (!driver_loaded(m)) return;
  const std::string base = "/proc/driver/nvidia";
  const auto branch = driver_major(m.driver.module_version);
  out.file(base + "/version", driver_version_text(m.driver));
  out.file(base + "/params", driver_params_text(m));
  out.file(base + "/registry", "Binary: \"\"\n", 0644);
  out.file(base + "/patches/README", kPatches);
  out.file(base + "/warnings/README", kWarnings);
  if (branch >= 430) out.file(base + "/suspend", "suspend hibernate resume\n", 0644);
  if (branch >= 470) out.file(base + "/suspend_depth", "default modeset uvm\n", 0644);
  for (const auto& gpu : m.gpus) {
    if (gpu.pci.driver != "nvidia") continue;
    const auto directory = fmt::format("{}/gpus/{}", base, gpu.pci.address.sysfs());
    out.file(directory + "/information", information(m.driver, gpu));
    out.file(directory + "/registry", "Binary: \"\"\n", 0644);
    if (branch >= 440) out.file(directory + "/power", kPower);
  }
  write_capabilities(out, m);
  std::uint32_t index = 0;
  for (const auto& function : m.pci) {
    if (function.class_code >> 8U != 0x0680U || function.vendor != 0x10de) continue;
    out.file(fmt::format("/proc/driver/nvidia-nvswitch/devices/{}", function.address.sysfs()),
             fmt::format("BIOS Version: 96.10.6D.00.01\nDriver Version: {}\nDevice Instance: {}\n",
                         m.driver.module_version, index++));
  }
  if (index > 0) out.file("/proc/driver/nvidia-nvswitch/permissions", "0666\n");
}

void remove_mig_capabilities(TreeWriter& out, const gantry_sim_gpu& gpu) {
  const auto base = fmt::format("/proc/driver/nvidia/capabilities/gpu{}/mig", gpu.minor);
  for (std::uint32_t gi = 0; gi < kMigInstanceIds; ++gi) {
    const auto directory = fmt::format("{}/gi{}", base, gi);
    if (!out.has(directory)) continue;
    out.remove(directory);
    out.remove(capability_node(gpu_instance_minor(gpu.minor, gi)));
    for (std::uint32_t ci = 0; ci < GANTRY_SIM_MAX_MIG_INSTANCES; ++ci) {
      out.remove(capability_node(compute_instance_minor(gpu.minor, gi, ci)));
    }
  }
}

void write_mig_capabilities(TreeWriter& out, const gantry_sim_gpu& gpu,
                            const gantry_sim_gpu_state& state, const CapabilityOptions& options) {
  const auto base = fmt::format("/proc/driver/nvidia/capabilities/gpu{}/mig", gpu.minor);
  out.directory(base);
  auto grant = [&](const std::string& path, std::uint32_t minor) {
    out.file(path, capability(minor, 0444));
    out.device(capability_node(minor), {options.caps_major, minor}, 0444, options.uid, options.gid);
  };
  for (const auto& instance : state.mig) {
    if (instance.used == 0) continue;
    const auto directory = fmt::format("{}/gi{}", base, instance.gi_id);
    grant(directory + "/access", gpu_instance_minor(gpu.minor, instance.gi_id));
    for (std::uint32_t i = 0; i < instance.ci_count && i < GANTRY_SIM_MAX_MIG_INSTANCES; ++i) {
      const auto ci = instance.ci[i].ci_id;
      grant(fmt::format("{}/ci{}/access", directory, ci),
            compute_instance_minor(gpu.minor, instance.gi_id, ci));
    }
  }
}

}  // namespace gantry::sim
