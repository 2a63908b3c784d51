// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/kernel_view.hpp"

#include "gpu/procfs/gpus.hpp"
#include "gpu/procfs/version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::probe {
namespace {

void add_pci_facts(model::Gpu& gpu, const PciScan& scan) {
  const auto* device = scan.find(gpu.pci);
  if (device == nullptr) return;
  const auto& f = device->function;
  gpu.numa_node = f.numa_node;
  gpu.cpu_list = device->cpu_list;
  gpu.pci_device_id = static_cast<std::uint32_t>(f.device) << 16U | f.vendor;
  gpu.pci_subsystem_id = device->subsystem_id;
  if (device->all_ones) {
    gpu.health = {model::HealthState::Lost,
                  {"its PCI configuration space reads all ones: it has fallen off the bus"}};
  }
}

void add_gpu(KernelView& view, procfs::GpuEntry entry, const PciScan& scan) {
  auto& [path, found, read_error, silent] = entry;
  const auto address = found.gpu.pci;
  view.silent = view.silent || silent;
  if (found.excluded) {
    view.excluded.push_back(address);
    view.notes.push_back(
        fmt::format("GPU {} is excluded from use by the driver's parameter NVreg_ExcludedGpus",
                    address.sysfs()));
    return;
  }
  if (!read_error.empty()) {
    // A driver that does not answer has one reason for all GPUs.
    if (std::count(view.notes.begin(), view.notes.end(), read_error) == 0)
      view.notes.push_back(std::move(read_error));
  } else if (!found.missing.empty()) {
    view.notes.push_back(fmt::format("{} does not say: {}", path, fmt::join(found.missing, ", ")));
  }
  if (!found.missing.empty()) view.incomplete.push_back(address);
  add_pci_facts(found.gpu, scan);
  view.gpus.push_back(std::move(found.gpu));
}

void note_gpus_without_function(KernelView& view, const PciScan& scan) {
  if (!scan.listed) return;
  for (const auto& gpu : view.gpus) {
    if (scan.find(gpu.pci) != nullptr) continue;
    view.notes.push_back(fmt::format(
        "the driver has GPU {0}, but /sys/bus/pci/devices/{0} does not exist: was it removed? "
        "`echo 1 | sudo tee /sys/bus/pci/rescan` looks for it again",
        gpu.pci.sysfs()));
  }
}

void note_gpus_without_driver_entry(KernelView& view, const PciScan& scan) {
  for (const auto& device : scan.devices) {
    const auto& f = device.function;
    if (!f.is_gpu() || f.driver != "nvidia") continue;
    const auto in_proc = [&](const auto& gpu) { return gpu.pci == f.address; };
    if (std::any_of(view.gpus.begin(), view.gpus.end(), in_proc)) continue;
    if (std::count(view.excluded.begin(), view.excluded.end(), f.address) != 0) continue;
    view.notes.push_back(
        fmt::format("PCI function {} is bound to nvidia but the driver does not list it as a GPU: "
                    "`dmesg | grep NVRM` says why",
                    f.address.sysfs()));
  }
}

}  // namespace

DriverModule read_driver_module(const sys::Host& host) {
  DriverModule module;
  auto version = procfs::read_version(host);
  if (!host.exists("/sys/module/nvidia")) {
    module.why_not = "the nvidia kernel module is not loaded: /sys/module/nvidia does not exist";
    return module;
  }
  const auto state = host.read_value("/sys/module/nvidia/initstate");
  if (state && *state != "live") {
    module.why_not = fmt::format("the nvidia kernel module is in the state {}, not live", *state);
    return module;
  }
  if (!version.ok()) {
    module.why_not = version.error().text();
    return module;
  }
  module.loaded = true;
  module.version = std::move(version->version);
  module.flavour = version->flavour;
  return module;
}

KernelView read_kernel_view(const sys::Host& host, DriverModule module, const PciScan& scan) {
  KernelView view;
  view.module = std::move(module);
  if (!view.module.loaded) {
    view.notes.push_back(view.module.why_not);
    return view;
  }
  if (view.module.version.empty()) {
    view.notes.emplace_back("/proc/driver/nvidia/version contains no version");
  }
  auto entries = procfs::read_gpus(host);
  if (!entries.ok()) {
    view.notes.push_back(entries.error().text());
    return view;
  }
  for (auto& entry : *entries) add_gpu(view, std::move(entry), scan);
  note_gpus_without_driver_entry(view, scan);
  note_gpus_without_function(view, scan);
  return view;
}

}  // namespace gantry::probe
