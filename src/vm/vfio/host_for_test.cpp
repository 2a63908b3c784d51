// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/host_for_test.hpp"

#include "base/core/text.hpp"
#include "base/sys/kernel.hpp"
#include "sim/machine/pci_drivers.hpp"
#include "vm/pci/read_bus.hpp"
#include "vm/vfio/journal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::vfio::test_host {

model::PciAddress at(std::string_view text) {
  return *model::PciAddress::parse(text);
}

TestHost::TestHost() {
  for (const auto* name : {"nvidia", "snd_hda_intel", "pcieport", "mlx5_core"}) {
    const auto directory = fmt::format("sys/bus/pci/drivers/{}/", name);
    for (const auto* file : {"bind", "unbind", "new_id"}) tree_.file(directory + file);
  }
  tree_.file("sys/bus/pci/drivers_probe").file("sys/class/iommu/dmar0/name", "dmar0\n");
  tree_.file("sys/firmware/acpi/tables/DMAR").directory("dev/vfio");
  tree_.file("proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu vmx\n");
  tree_.file("proc/cmdline", "root=/dev/sda1 intel_iommu=on\n");
  tree_.file("proc/sys/kernel/osrelease", "6.1.0-21-amd64\n");
  tree_.file("proc/interrupts", " 24:  0  IR-PCI-MSI 512-edge  nvidia\n");
  tree_.file("lib/modules/6.1.0-21-amd64/modules.dep", "kernel/drivers/vfio/pci/vfio-pci.ko:\n");
  tree_.file("run/systemd/system/.keep");
  add({.address = kBridge,
       .device = "0x2f04",
       .class_code = "0x060400",
       .driver = "pcieport",
       .vendor = "0x8086"});
  add({.address = kGpu});
  add({.address = kSound, .device = "0x1aef", .class_code = "0x040300", .driver = "snd_hda_intel"});
  add({.address = kTwin, .group = 15});
  for (const auto& [gpu, minor] : {std::pair(kGpu, 0), std::pair(kTwin, 1)}) {
    tree_.file(fmt::format("proc/driver/nvidia/gpus/{}/information", gpu),
               fmt::format("Model: \t NVIDIA A10\nIRQ: 24\nGPU UUID: \t GPU-{}0000000-1111-2222-"
                           "3333-444444444444\nDevice Minor: \t {}\n",
                           minor, minor));
    tree_.file(fmt::format("dev/nvidia{}", minor));
  }
}

TestHost& TestHost::add(const TestFunction& f) {
  const auto real = fmt::format("sys/devices/pci0000:00/{}/", f.address);
  tree_.file(real + "vendor", f.vendor + "\n").file(real + "device", f.device + "\n");
  tree_.file(real + "subsystem_vendor", f.vendor + "\n").file(real + "subsystem_device", "0x1\n");
  tree_.file(real + "class", f.class_code + "\n").file(real + "revision", "0xa1\n");
  tree_.file(real + "driver_override", "(null)\n")
      .file(real + "reset")
      .file(real + "power/control", "auto\n");
  tree_.file(real + "reset_method", "flr bus\n").file(real + "numa_node", "0\n");
  tree_.file(real + "modalias", fmt::format("pci:v0000{}d0000{}sv000010DEsd00000001bc03sc02i00\n",
                                            f.vendor.substr(2), f.device.substr(2)));
  tree_.link("sys/bus/pci/devices/" + f.address, "/sys/devices/pci0000:00/" + f.address);
  if (!f.driver.empty()) {
    tree_.link(real + "driver", "/sys/bus/pci/drivers/" + f.driver);
    tree_.link(fmt::format("sys/bus/pci/drivers/{}/{}", f.driver, f.address),
               "/sys/devices/pci0000:00/" + f.address);
  }
  if (f.group < 0) return *this;
  const auto group = fmt::format("sys/kernel/iommu_groups/{}", f.group);
  tree_.link(real + "iommu_group", "/" + group);
  tree_.link(fmt::format("{}/devices/{}", group, f.address),
             "/sys/devices/pci0000:00/" + f.address);
  tree_.file(group + "/type", "DMA\n");
  return *this;
}

TestHost& TestHost::file(const std::string& path, std::string_view text) {
  tree_.file(path, text);
  return *this;
}

TestHost& TestHost::process(int pid, std::string_view name, std::string_view node,
                            std::string_view cgroup) {
  const auto directory = fmt::format("proc/{}/", pid);
  tree_.file(directory + "comm", fmt::format("{}\n", name.substr(0, 15)));
  tree_.file(directory + "cmdline", std::string(name) + '\0' + "--all" + '\0');
  tree_.file(directory + "stat", fmt::format("{} ({}) S 1\n", pid, name.substr(0, 15)));
  tree_.file(directory + "cgroup", cgroup).link(directory + "fd/7", node);
  // Of a service, its cgroup.
  const auto path = trim(cgroup.substr(std::min(cgroup.rfind(':') + 1, cgroup.size())));
  if (path.starts_with("/system.slice/")) tree_.directory(fmt::format("sys/fs/cgroup{}", path));
  return *this;
}

TestHost& TestHost::remove_process(int pid) {
  tree_.remove(fmt::format("proc/{}", pid));
  return *this;
}

std::string TestHost::driver(const std::string& address) const {
  return pci::read_driver(host(), at(address));
}

std::string TestHost::driver_override(const std::string& address) const {
  return pci::read_driver_override(host(), at(address)).value_or("unknown");
}

std::vector<std::string> TestHost::bindings() const {
  std::vector<std::string> all;
  const auto bus = pci::read_bus(host());
  for (const auto& f : bus->functions) {
    all.push_back(fmt::format("{}={}/{}", f.address.sysfs(), f.driver, f.driver_override));
  }
  return all;
}

bool TestHost::has_journal() const {
  return !read_journals(host())->empty();
}

Effects scripted_effects(const sys::Host& host, Script& script) {
  const auto act = [&script](const std::string& entry,
                             const std::function<Status()>& effect) -> Status {
    ++script.count;
    const bool now = script.count == script.fault_at;
    if (now && script.fault == Fault::KillBefore) throw SimulatedKill{};
    if (now && script.fault == Fault::Fail) return Error::sys(EIO, entry);
    if (script.rule) GANTRY_CHECK(script.rule(entry));
    script.log.push_back(entry);
    auto done = effect();
    if (now && script.fault == Fault::KillAfter) throw SimulatedKill{};
    return done;
  };
  const auto real = real_effects(host);
  Effects effects;
  effects.write = [&host, act](const std::string& path, std::string_view text) {
    std::string shown(text.substr(0, text.find('\n')));
    return act(fmt::format("write {} {}", path, shown),
               [&] { return sim::write_sysfs(host, path, text); });
  };
  effects.load_module = [&host, act](const std::string& module) {
    return act("modprobe " + module, [&] { return sim::load_pci_driver(host, module); });
  };
  effects.run = [act](const std::vector<std::string>& argv) {
    return act(fmt::format("run {}", fmt::join(argv, " ")), [] { return Status{}; });
  };
  effects.save = [real, act](const std::string& path, std::string_view content) {
    return act("save " + path, [&] { return real.save(path, content); });
  };
  effects.remove = [real, act](const std::string& path) {
    return act("remove " + path, [&] { return real.remove(path); });
  };
  effects.pause = [](std::chrono::milliseconds) {};
  return effects;
}

Result<BindResult> bind_gpu(const TestHost& machine, Script& script, BindOptions options) {
  const auto host = machine.host();
  return bind(host, {.targets = {at(kGpu)}}, options, scripted_effects(host, script));
}

Result<BindResult> release_gpu(const TestHost& machine, Script& script, BindOptions options) {
  const auto host = machine.host();
  return release(host, {at(kGpu)}, options, scripted_effects(host, script));
}

Result<BindResult> recover_gpu(const TestHost& machine, Script& script) {
  const auto host = machine.host();
  return recover(host, scripted_effects(host, script));
}

bool is_bound(const TestHost& machine) {
  return machine.driver(kGpu) == "vfio-pci" && machine.driver(kSound) == "vfio-pci" &&
         machine.driver_override(kGpu) == "vfio-pci";
}

}  // namespace gantry::vfio::test_host
