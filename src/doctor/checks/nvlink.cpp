// SPDX-License-Identifier: Apache-2.0
// NVLinks and GPUDirect RDMA.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/checks/nvswitch_internal.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>

namespace gantry::doctor {
namespace {

// Boards whose GPUs reach each other through NVSwitch only.
bool on_switch_board(const model::Gpu& gpu) {
  if (contains(gpu.name, "NVL") || contains(gpu.name, "PCIe")) return false;
  return contains(gpu.name, "SXM") || contains(gpu.name, "HBM3") || gpu.name == "NVIDIA H200" ||
         gpu.name == "NVIDIA B200" || gpu.name == "NVIDIA B300";
}

Finding judge_nvlink_disable(const Facts& f) {
  const auto value = f.param_number("NvLinkDisable");
  if (!value) return skip("the driver does not report NvLinkDisable");
  const bool switches = !f.nvswitches().empty();
  const std::vector<Evidence> read{
      {"/proc/driver/nvidia/params", fmt::format("NvLinkDisable: {}", *value)},
      {"/sys/bus/pci/devices", switches ? "NVSwitches" : "no NVSwitch"}};
  if (switches) {
    if (*value == 0) return ok("NVLink is on, as the NVSwitches need it", read);
    return warn("NVLink is switched off on a machine with NVSwitches", read)
        .because(
            "NVreg_NvLinkDisable=1 is left over from a single-GPU set-up: GPUs use PCIe instead.")
        .advise(
            "sudo sed -i '/NVreg_NvLinkDisable/d' /etc/modprobe.d/*.conf && sudo "
            "update-initramfs -u && sudo reboot");
  }
  if (!any_gpu(f, on_switch_board) || !f.guest().is_virtual()) {
    return skip("this machine has no GPU of an NVSwitch board");
  }
  if (*value != 0) return ok("NVLink is off, as a guest without NVSwitches needs it", read);
  return info("this machine has a GPU of an NVSwitch board without the switches, and NVLink is on",
              read);
}

struct Pair {
  std::size_t first = 0;
  std::size_t second = 0;
  int nvlinks = 0;
};

// A lost GPU has no links; gpu.lost reports it.
std::vector<Pair> pairs_that_answer(const Facts& f) {
  const auto& links = f.inventory().links;
  const auto lost = [&](std::size_t index) {
    const auto& gpus = f.inventory().gpus;
    return index < gpus.size() && gpus[index].health.state == model::HealthState::Lost;
  };
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < links.size(); ++i) {
    for (std::size_t j = i + 1; j < links[i].size(); ++j) {
      if (!lost(i) && !lost(j)) pairs.push_back({i, j, links[i][j].nvlinks});
    }
  }
  return pairs;
}

Finding judge_links(const Facts& f) {
  if (!on_nvswitch(f)) return skip("no GPUs joined by NVSwitch");
  const auto pairs = pairs_that_answer(f);
  if (pairs.empty()) return skip("fewer than two GPUs answer");
  const auto fewer = [](const Pair& a, const Pair& b) { return a.nvlinks < b.nvlinks; };
  const int most = std::max_element(pairs.begin(), pairs.end(), fewer)->nvlinks;
  Tally tally;
  for (const auto& pair : pairs) {
    if (pair.nvlinks == most) continue;
    tally.found(fmt::format("GPU {}-{}", pair.first, pair.second),
                {"NVML", fmt::format("GPU {} and GPU {}: {} NVLinks", pair.first, pair.second,
                                     pair.nvlinks)});
  }
  if (!tally.any_bad()) {
    return ok("all GPUs have all their NVLinks",
              {{"NVML", fmt::format("{} NVLinks for each pair", most)}});
  }
  return warn(fmt::format("fewer than {} NVLinks: {}", most, tally.who()), tally.bad);
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

constexpr Check kNvlinkChecks[] = {
    {.id = "fabric.nvlink-disable",
     .reference = "V6",
     .area = Area::Fabric,
     .title = "NvLinkDisable matches the switches",
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
  return kNvlinkChecks;
}

}  // namespace gantry::doctor
