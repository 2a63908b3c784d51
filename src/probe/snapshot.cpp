// SPDX-License-Identifier: Apache-2.0
#include "probe/snapshot.hpp"

#include "base/text.hpp"
#include "driver/files.hpp"
#include "driver/nodes.hpp"
#include "driver/root.hpp"
#include "loader/ld_cache.hpp"
#include "probe/kernel_view.hpp"
#include "probe/merge.hpp"
#include "probe/nvml_child.hpp"
#include "probe/pci.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace gantry::probe {
namespace {

constexpr std::string_view kNvmlName = "libnvidia-ml.so.1";

bool is_64bit_library(const sys::Host& host, std::string_view path) {
  const auto fd = host.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  std::array<char, 5> start{};  // 0x7f E L F, then the class: 2 is 64-bit
  return fd.ok() && ::pread(fd->get(), start.data(), start.size(), 0) == 5 && start[4] == 2;
}

// The file to load, as this process sees it. Resolved first: a link that is absolute inside the
// root would lead out of it.
std::optional<std::string> nvml_library(const sys::Host& host, const driver::DriverRoot& root) {
  const auto versioned = fmt::format("libnvidia-ml.so.{}", root.library_version);
  for (const auto name : {kNvmlName, std::string_view(versioned)}) {
    for (const auto& directory : root.directories) {
      const auto path = host.resolve(fmt::format("{}/{}", directory.path, name));
      if (path.ok() && is_64bit_library(host, *path)) return host.outside(*path);
    }
  }
  return std::nullopt;
}

// What the loader would take, which is where nearly every driver is: one file to read instead of a
// search of all places. Only where the cache does not know it, the search decides.
std::optional<std::string> cached_nvml_library(const sys::Host& host, const std::string& ld_cache) {
  const auto bytes = host.read(ld_cache);
  if (!bytes.ok()) return std::nullopt;
  const auto cache = loader::parse_cache(*bytes);
  if (!cache.ok()) return std::nullopt;
  for (const auto& entry : cache->entries) {
    if (entry.name != kNvmlName || !entry.is_64bit()) continue;
    const auto path = host.resolve(entry.path);
    if (path.ok()) return host.outside(*path);
  }
  return std::nullopt;
}

// In the child, so that the parent need not wait for it.
Result<driver::Nvml> load_nvml(const sys::Host& host, const std::string& module_version,
                               const SnapshotOptions& options) {
  const bool is_named = !options.driver.root.empty() || !options.driver.libraries.empty();
  auto library = is_named ? std::nullopt : cached_nvml_library(host, options.ld_cache);
  if (!library) {
    library = nvml_library(
        host, driver::find_root(host, module_version, options.ld_cache, options.driver));
  }
  if (library) return driver::Nvml::load(*library);
  return Error(Errc::NotFound,
               fmt::format("{} was not found: install the driver's user space, or name its place "
                           "with --root",
                           kNvmlName));
}

model::Inventory without_nvml() {
  model::Inventory view;
  view.driver.nvml_error = "NVML was not asked";
  return view;
}

void add_notes(std::vector<std::string>& notes, const std::vector<std::string>& more) {
  notes.insert(notes.end(), more.begin(), more.end());
}

driver::DeviceNodes find_nodes(const sys::Host& host, const std::vector<model::Gpu>& gpus) {
  std::vector<std::uint32_t> minors;
  for (const auto& gpu : gpus) {
    if (gpu.minor) minors.push_back(*gpu.minor);
  }
  return driver::find_nodes(host, minors);
}

// A MIG instance is reached through the nodes of two capabilities. NVML does not know them; the
// kernel lists them by the GPU's minor.
void add_capability_nodes(const sys::Host& host, model::Inventory& inventory) {
  const auto has_instances = [](const auto& gpu) { return !gpu.mig.instances.empty(); };
  if (std::none_of(inventory.gpus.begin(), inventory.gpus.end(), has_instances)) return;
  const auto minors = driver::read_mig_minors(host);
  if (!minors.ok()) return inventory.notes.push_back(minors.error().text());
  for (auto& gpu : inventory.gpus) {
    if (!gpu.minor) continue;
    for (auto& mig : gpu.mig.instances) {
      const auto gi = static_cast<std::uint32_t>(mig.gpu_instance);
      const auto ci = static_cast<std::uint32_t>(mig.compute_instance);
      if (const auto minor = minors->gpu_instance(*gpu.minor, gi)) {
        mig.gpu_instance_node = driver::capability_node(*minor);
      }
      if (const auto minor = minors->compute_instance(*gpu.minor, gi, ci)) {
        mig.compute_instance_node = driver::capability_node(*minor);
      }
    }
  }
}

// Where NVML did not answer, the kernel still knows that these are not whole.
void mark_divided(const std::vector<std::uint32_t>& minors, model::Inventory& inventory) {
  for (auto& gpu : inventory.gpus) {
    const bool divided =
        gpu.minor && std::find(minors.begin(), minors.end(), *gpu.minor) != minors.end();
    if (!divided || gpu.mig.current != model::MigMode::Unknown) continue;
    gpu.mig.current = model::MigMode::Enabled;
    inventory.notes.push_back(
        fmt::format("GPU {} has MIG instances, and NVML, which alone can name them, did not answer",
                    gpu.index));
  }
}

void add_drm_nodes(const driver::DeviceNodes& nodes, std::vector<model::Gpu>& gpus) {
  for (const auto& drm : nodes.drm) {
    const auto address = model::PciAddress::parse(drm.gpu);
    for (auto& gpu : gpus) {
      if (address && gpu.pci == *address) gpu.drm_nodes.push_back(drm.path);
    }
  }
}

// NVML says "driver not loaded" also where only its door is missing.
void explain_unreachable_driver(model::Inventory& inventory, const driver::DeviceNodes& nodes) {
  auto& error = inventory.driver.nvml_error;
  if (inventory.driver.version.empty() || !contains(error, "DRIVER_NOT_LOADED")) return;
  const bool has_control =
      std::any_of(nodes.nodes.begin(), nodes.nodes.end(),
                  [](const auto& node) { return node.path == "/dev/nvidiactl"; });
  error = has_control ? "NVML_ERROR_DRIVER_NOT_LOADED: NVML cannot reach the driver, although its "
                        "module is loaded"
                      : "NVML_ERROR_DRIVER_NOT_LOADED: NVML cannot reach the driver: its module is "
                        "loaded, but /dev/nvidiactl is "
                        "missing; `gantry doctor --fix` makes the nodes";
}

// libcuda and NVML loaded against another kernel module do not work: the commonest broken machine.
void compare_versions(model::Inventory& inventory) {
  const auto& driver = inventory.driver;
  if (driver.version.empty() || driver.library_version.empty()) return;
  if (driver.version == driver.library_version) return;
  inventory.differences.push_back(
      {"driver version: kernel module and libraries", driver.version, driver.library_version});
}

}  // namespace

std::vector<std::uint32_t> gpus_with_instances(const sys::Host& host) {
  constexpr std::string_view kCapabilities = "/proc/driver/nvidia/capabilities";
  std::vector<std::uint32_t> minors;
  const auto names = host.list(kCapabilities);
  if (!names.ok()) return minors;
  for (const auto& name : *names) {
    const auto minor = name.starts_with("gpu") ? parse_u64(name.substr(3)) : std::nullopt;
    if (!minor || *minor > 0xffffffffU) continue;
    const auto instances = host.list(fmt::format("{}/{}/mig", kCapabilities, name));
    const auto is_instance = [](const std::string& entry) { return entry.starts_with("gi"); };
    if (instances.ok() && std::any_of(instances->begin(), instances->end(), is_instance))
      minors.push_back(static_cast<std::uint32_t>(*minor));
  }
  return minors;
}

Result<model::Inventory> snapshot(const sys::Host& host, const SnapshotOptions& options) {
  if (!host.exists("/proc") && !host.exists("/sys")) {
    return Error(
        Errc::NotFound,
        fmt::format("{} has neither /proc nor /sys: not the root of a machine", host.root()));
  }
  // First NVML, which takes longest, then everything else while it works.
  auto module = read_driver_module(host);
  std::optional<NvmlChild> child;
  std::vector<std::uint32_t> divided;
  if (options.nvml != UseNvml::Skip) divided = gpus_with_instances(host);
  if (options.nvml == UseNvml::Use || !divided.empty()) {
    child.emplace([&] { return load_nvml(host, module.version, options); }, options.parts,
                  options.deadline);
  }
  const auto root = driver::find_root(host, module.version, options.ld_cache, options.driver);

  auto pci = scan_pci(host);
  PciScan scan;
  if (pci.ok()) {
    scan = *std::move(pci);
  } else {
    scan.notes.push_back(pci.error().text());
  }
  const auto kernel = read_kernel_view(host, std::move(module), scan);
  driver::DriverFiles files;
  driver::DeviceNodes nodes;
  if (options.files == FindFiles::Yes) {
    files = driver::find_files(host, root);
    nodes = find_nodes(host, kernel.gpus);
  }
  auto boot_id = host.read_value("/proc/sys/kernel/random/boot_id").value_or("");

  auto inventory = merge(scan, kernel, child ? child->join() : without_nvml());
  inventory.boot_id = std::move(boot_id);
  auto nvml_version = std::move(inventory.driver.library_version);
  driver::describe(root, inventory.driver);
  if (inventory.driver.library_version.empty())
    inventory.driver.library_version = std::move(nvml_version);
  explain_unreachable_driver(inventory, nodes);
  compare_versions(inventory);
  mark_divided(divided, inventory);
  add_capability_nodes(host, inventory);
  add_drm_nodes(nodes, inventory.gpus);
  inventory.files = std::move(files.files);
  inventory.nodes = std::move(nodes.nodes);
  for (const auto& problem : nodes.problems) inventory.notes.push_back(problem.text);
  add_notes(inventory.notes, nodes.notes);
  add_notes(inventory.notes, root.notes);
  add_notes(inventory.notes, files.notes);
  inventory.generation = generation_of(inventory);
  return inventory;
}

}  // namespace gantry::probe
