// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/kernel_view.hpp"

#include "base/core/text.hpp"
#include "gpu/driver/file_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace gantry::probe {
namespace {

using model::ModuleFlavour;

constexpr std::string_view kGpus = "/proc/driver/nvidia/gpus";
constexpr std::size_t kProcLimit = std::size_t{64} << 10U;
constexpr std::string_view kModel = "Model", kUuid = "GPU UUID", kMinor = "Device Minor";
constexpr std::size_t kMaxGpus = 256;  // the driver supports at most 32

// The driver prints question marks for values that it has not read from the card yet.
std::string known(std::string_view text) {
  if (contains(text, "?") || text == "N/A") return "";
  return std::string(text);
}

std::string to_upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

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

void note_missing_lines(KernelView& view, const InformationFile& found, std::string_view path) {
  if (found.missing.empty()) return;
  view.notes.push_back(fmt::format("{} does not say: {}", path, fmt::join(found.missing, ", ")));
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

VersionFile parse_version_file(std::string_view text) {
  for (auto line : lines(text)) {
    if (!line.starts_with("NVRM version:")) continue;
    VersionFile found;
    found.flavour =
        contains(line, "Open Kernel Module") ? ModuleFlavour::Open : ModuleFlavour::Proprietary;
    found.version = driver::version_in_nvrm_line(line);
    return found;
  }
  return {};
}

InformationFile parse_information_file(std::string_view text) {
  InformationFile found;
  found.missing = {kModel, kUuid, kMinor};
  for (auto line : lines(text)) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto key = trim(line.substr(0, colon));
    const auto value = trim(line.substr(colon + 1));
    auto& gpu = found.gpu;
    std::erase(found.missing, key);
    if (key == kModel) gpu.name = std::string(value == "Unknown" ? "" : value);
    if (key == kUuid) gpu.uuid.text = known(value);
    if (key == "Video BIOS") gpu.vbios = to_upper(known(value));  // NVML's spelling
    if (key == "GPU Firmware") gpu.gsp_firmware = known(value);
    // Before 460: "Blacklisted".
    if (key == "GPU Excluded" || key == "Blacklisted") found.excluded = value == "Yes";
    if (key == kMinor) {
      const auto minor = parse_u64(value);
      if (minor && *minor < (1U << 20U)) gpu.minor = static_cast<std::uint32_t>(*minor);
    }
  }
  const bool has_line = std::count(found.missing.begin(), found.missing.end(), kMinor) == 0;
  if (has_line && !found.gpu.minor) found.missing.push_back(kMinor);
  return found;
}

DriverModule read_driver_module(const sys::Host& host) {
  DriverModule module;
  const auto version = host.read("/proc/driver/nvidia/version", kProcLimit);
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
  auto parsed = parse_version_file(*version);
  module.loaded = true;
  module.version = std::move(parsed.version);
  if (module.version.empty())
    module.version = host.read_value("/sys/module/nvidia/version").value_or("");
  module.flavour = parsed.flavour;
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
  const auto names = host.list(kGpus);
  if (!names.ok()) {
    view.notes.push_back(names.error().text());
    return view;
  }
  for (const auto& name : *names) {
    const auto address = model::PciAddress::parse(name);
    if (!address || view.gpus.size() >= kMaxGpus) continue;
    const auto path = fmt::format("{}/{}/information", kGpus, name);
    const auto text = host.read(path, kProcLimit);
    if (!text.ok()) view.notes.push_back(text.error().text());
    auto found = parse_information_file(text.ok() ? *text : "");
    found.gpu.pci = *address;
    if (found.excluded) {
      view.excluded.push_back(*address);
      view.notes.push_back(fmt::format(
          "GPU {} is excluded from use by the driver's parameter NVreg_ExcludedGpus", name));
      continue;
    }
    if (!found.missing.empty()) view.incomplete.push_back(*address);
    if (text.ok()) note_missing_lines(view, found, path);
    add_pci_facts(found.gpu, scan);
    view.gpus.push_back(std::move(found.gpu));
  }
  const auto by_address = [](const auto& a, const auto& b) { return a.pci < b.pci; };
  std::sort(view.gpus.begin(), view.gpus.end(), by_address);
  note_gpus_without_driver_entry(view, scan);
  note_gpus_without_function(view, scan);
  return view;
}

}  // namespace gantry::probe
