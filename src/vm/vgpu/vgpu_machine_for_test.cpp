// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/vgpu_machine_for_test.hpp"

#include "sim/machine/tree.hpp"
#include "sim/machine/vgpu_sysfs.hpp"
#include "vm/vgpu/holders.hpp"
#include "vm/vgpu/live_actions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace gantry::vgpu {

VgpuMachine::VgpuMachine(std::string_view name) : root_(tree_.path("machine")) {
  const auto machine = sim::load_machine(name);
  GANTRY_ASSERT(machine.ok());
  const auto made = sim::create(*machine, {.root = root_, .nodes = sim::DeviceNodes::Table});
  GANTRY_ASSERT(made.ok());
  host_ = std::make_unique<sys::Host>(*sys::Host::at(root_));
}

std::string VgpuMachine::vendor_path(const std::string& function) {
  const auto device = host().resolve("/sys/bus/pci/devices/" + function);
  GANTRY_ASSERT(device.ok());
  return path(*device + "/nvidia/current_vgpu_type");
}

Status VgpuMachine::act(const std::function<Status()>& work) {
  ++acts_;
  if (acts_ == kill_at_ && before_) throw KilledForTest();
  auto status = work();
  if (acts_ == kill_at_) throw KilledForTest();
  return status;
}

Actions VgpuMachine::actions(int kill_at, bool before) {
  kill_at_ = kill_at;
  before_ = before;
  acts_ = 0;
  Actions common;
  add_common_actions(host(), common);
  Actions actions;
  actions.save = [this, common](std::string_view where, std::string_view content) {
    return act([&] { return common.save(where, content); });
  };
  actions.erase = [this, common](std::string_view where) {
    return act([&] { return common.erase(where); });
  };
  const auto write = [this](std::string_view where, std::string_view text) -> Status {
    if (fault) GANTRY_CHECK(fault(where, text));
    writes.push_back(fmt::format("{} {}", where, text));
    return sim::write_vgpu_sysfs(root_, where, text);
  };
  actions.write = [this, write](std::string_view where, std::string_view text) {
    return act([&] { return write(where, text); });
  };
  actions.enable_vfs = [this, write](const model::PciAddress& gpu, unsigned count) {
    return act([&] { return write(pci_directory(gpu) + "/sriov_numvfs", fmt::to_string(count)); });
  };
  actions.enable_mixed = [this](const model::PciAddress& gpu) {
    return act([&] { return sim::allow_mixed_vgpus(root_, gpu); });
  };
  actions.pause = [](std::chrono::milliseconds) {};
  actions.new_uuid = [this] {
    return fmt::format("83b8f4f2-509f-482f-8c1e-e6bfe0fa{:04x}", ++next_uuid_);
  };
  return actions;
}

void VgpuMachine::reboot() {
  GANTRY_ASSERT(sim::reboot_vgpu_host(root_).ok());
}

void VgpuMachine::hold(const Vgpu& vgpu, unsigned pid) {
  const auto directory = path(fmt::format("/proc/{}/fd", pid));
  std::filesystem::create_directories(directory);
  std::filesystem::create_symlink(vfio_node(vgpu), directory + "/7");
}

void VgpuMachine::release(unsigned pid) {
  std::filesystem::remove_all(path(fmt::format("/proc/{}", pid)));
}

std::string types_of(const std::vector<VgpuGpu>& gpus) {
  std::string text;
  for (const auto& gpu : gpus) {
    if (&gpu != gpus.data()) text += "|";
    std::vector<std::string> types;
    for (const auto& vgpu : gpu.vgpus) types.push_back(vgpu.type);
    std::sort(types.begin(), types.end());
    text += fmt::format("{}", fmt::join(types, " "));
  }
  return text;
}

model::PciAddress first_gpu() {
  return *model::PciAddress::parse("0000:3b:00.0");
}

model::PciAddress second_gpu() {
  return *model::PciAddress::parse("0000:af:00.0");
}

}  // namespace gantry::vgpu
