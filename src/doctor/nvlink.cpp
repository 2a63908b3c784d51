// SPDX-License-Identifier: Apache-2.0
// The links themselves.
#include "base/text.hpp"
#include "doctor/areas_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

bool any_gpu(const Facts& f, bool (*test)(const model::Gpu&)) {
  const auto& gpus = f.inventory().gpus;
  return std::any_of(gpus.begin(), gpus.end(), test);
}

bool on_nvswitch(const Facts& f) {
  for (const auto& row : f.inventory().links) {
    for (const auto& link : row) {
      if (link.nvswitch) return true;
    }
  }
  return false;
}

// Boards whose GPUs reach each other through NVSwitch only.
bool on_switch_board(const model::Gpu& gpu) {
  if (contains(gpu.name, "NVL") || contains(gpu.name, "PCIe")) return false;
  return contains(gpu.name, "SXM") || contains(gpu.name, "HBM3") || gpu.name == "NVIDIA H200" ||
         gpu.name == "NVIDIA B200" || gpu.name == "NVIDIA B300";
}

Finding judge_nvlink_disable(const Facts& f) {
  const auto value = f.param_number("NvLinkDisable");
  if (!value) return skip("the driver does not tell NvLinkDisable");
  const bool switches = !f.nvswitches().empty();
  const std::vector<Evidence> read{
      {"/proc/driver/nvidia/params", fmt::format("NvLinkDisable: {}", *value)},
      {"/sys/bus/pci/devices", switches ? "NVSwitches" : "no NVSwitch"}};
  if (switches) {
    if (*value == 0) return ok("NVLink is on, as the NVSwitches need it", read);
    return warn("NVLink is switched off on a machine with NVSwitches", read)
        .because("NVreg_NvLinkDisable=1 was left from a single-GPU set-up: GPUs talk over PCIe.")
        .advise(
            "sudo sed -i '/NVreg_NvLinkDisable/d' /etc/modprobe.d/*.conf && sudo "
            "update-initramfs -u && sudo reboot");
  }
  if (!any_gpu(f, on_switch_board) || !f.guest().is_virtual()) {
    return skip("no GPU from an NVSwitch board was given to this machine");
  }
  if (*value != 0) return ok("NVLink is off, as a guest without NVSwitches needs it", read);
  return info("a GPU of an NVSwitch board is here without the switches, and NVLink is on", read);
}

Finding judge_links(const Facts& f) {
  const auto& links = f.inventory().links;
  int least = -1;
  int most = 0;
  std::string pair;
  for (std::size_t i = 0; i < links.size(); ++i) {
    for (std::size_t j = i + 1; j < links[i].size(); ++j) {
      if (!links[i][j].nvswitch && links[i][j].nvlinks == 0 && !on_nvswitch(f)) continue;
      const int count = links[i][j].nvlinks;
      most = std::max(most, count);
      if (least < 0 || count < least) {
        least = count;
        pair = fmt::format("GPU {} and GPU {}", i, j);
      }
    }
  }
  if (!on_nvswitch(f)) return skip("no GPUs joined by NVSwitch");
  const std::vector<Evidence> read{{"NVML", fmt::format("{} to {} NVLinks a pair", least, most)}};
  if (least == most) return ok("all GPUs have all their NVLinks", read);
  return warn(fmt::format("{} have {} NVLinks, others {}", pair, least, most), read);
}

Finding judge_peer_memory(const Facts& f) {
  const auto devices = f.host().list("/sys/class/infiniband");
  if (!devices.ok() || devices->empty()) return skip("no RDMA device");
  if (!f.driver_loaded()) return skip("the nvidia module is not loaded");
  const bool loaded = f.module_loaded("nvidia_peermem");
  const bool open = f.inventory().driver.flavour == model::ModuleFlavour::Open;
  const std::vector<Evidence> read{
      {"/sys/module/nvidia_peermem", loaded ? "present" : "(absent)"},
      {"/proc/driver/nvidia/version", open ? "open (has DMA-BUF)" : "proprietary"}};
  if (loaded || open) return ok("RDMA devices can reach GPU memory", read);
  return info("RDMA devices cannot reach GPU memory: nvidia_peermem is not loaded", read);
}

std::vector<Action> fix_peer_memory(const Facts&) {
  return {LoadModule{"nvidia-peermem"}};
}

constexpr Check kChecks[] = {
    {.id = "fabric.nvlink-disable",
     .reference = "V6",
     .area = Area::Fabric,
     .title = "NvLinkDisable fits the switches",
     .reads = "/proc/driver/nvidia/params, /sys/bus/pci/devices (class 0680)",
     .cause = "A single GPU of an NVSwitch board in a guest waits for a fabric that it cannot see; "
              "CUDA may say 802.",
     .remedy = "if CUDA says 802: echo 'options nvidia NVreg_NvLinkDisable=1' | sudo tee "
               "/etc/modprobe.d/nvidia-nvlink.conf && sudo update-initramfs -u && sudo reboot",
     .judge = judge_nvlink_disable},
    {.id = "fabric.links",
     .reference = "H31",
     .area = Area::Fabric,
     .title = "all GPUs have all their NVLinks",
     .reads = "NVML",
     .cause = "A link is down (Xid 74), a baseboard connection or a switch port is broken.",
     .remedy = "nvidia-smi nvlink -s; sudo dmesg | grep -e 'Xid.*74' -e SXid",
     .judge = judge_links},
    {.id = "fabric.peer-memory",
     .reference = "H23",
     .area = Area::Fabric,
     .fix_class = FixClass::OnRequest,
     .title = "RDMA devices can reach GPU memory",
     .reads = "/sys/class/infiniband, /sys/module/nvidia_peermem",
     .cause =
         "GPUDirect RDMA needs nvidia_peermem with the proprietary module; without it copies go "
         "through the host's memory.",
     .remedy = "sudo modprobe nvidia-peermem",
     .judge = judge_peer_memory,
     .fix = fix_peer_memory},
};

}  // namespace

std::span<const Check> nvlink_checks() {
  return kChecks;
}

}  // namespace gantry::doctor
