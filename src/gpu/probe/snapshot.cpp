// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/snapshot.hpp"

#include "base/core/text.hpp"
#include "gpu/driver/device_nodes.hpp"
#include "gpu/driver/files.hpp"
#include "gpu/probe/kernel_view.hpp"
#include "gpu/probe/merge.hpp"
#include "gpu/probe/nvml_probe.hpp"
#include "gpu/probe/pci.hpp"
#include "gpu/procfs/mig.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::probe {
namespace {

NvmlView without_nvml() {
  NvmlView view{.inventory = {}, .failure = NVML_ERROR_UNINITIALIZED};
  view.inventory.driver.nvml_error = "NVML was not queried";
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
  return driver::find_device_nodes(host, minors);
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

// If NVML did not answer, the kernel still shows which GPUs have MIG instances.
void mark_mig_enabled(const std::vector<std::uint32_t>& minors, model::Inventory& inventory) {
  for (auto& gpu : inventory.gpus) {
    const bool divided =
        gpu.minor && std::find(minors.begin(), minors.end(), *gpu.minor) != minors.end();
    if (!divided || gpu.mig.current != model::MigMode::Unknown) continue;
    gpu.mig.current = model::MigMode::Enabled;
    inventory.notes.push_back(fmt::format(
        "GPU {} has MIG instances, but NVML did not answer, and only NVML can name them",
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

// NVML also reports "driver not loaded" if only /dev/nvidiactl is missing.
void explain_unreachable_driver(model::Inventory& inventory, const driver::DeviceNodes& nodes) {
  auto& error = inventory.driver.nvml_error;
  const bool has_control =
      std::any_of(nodes.nodes.begin(), nodes.nodes.end(),
                  [](const auto& node) { return node.path == "/dev/nvidiactl"; });
  error = has_control ? "NVML_ERROR_DRIVER_NOT_LOADED: NVML cannot reach the driver, although its "
                        "module is loaded"
                      : "NVML_ERROR_DRIVER_NOT_LOADED: NVML cannot reach the driver: its module is "
                        "loaded, but /dev/nvidiactl is "
                        "missing; `gantry doctor --fix` creates the nodes";
}

// libcuda and NVML do not work with a kernel module of another version. This is the most common
// fault.
void compare_versions(model::Inventory& inventory) {
  const auto& driver = inventory.driver;
  if (driver.version.empty() || driver.library_version.empty()) return;
  if (driver.version == driver.library_version) return;
  inventory.differences.push_back(
      {"driver version: kernel module and libraries", driver.version, driver.library_version});
}

Status check_is_machine(const sys::Host& host) {
  if (host.exists("/proc") || host.exists("/sys")) return {};
  return Error(Errc::NotFound,
               fmt::format("{} has neither /proc nor /sys, so it is not the root of a machine",
                           host.root()));
}

// Everything except NVML's part.
struct HostFacts {
  driver::DriverRoot root;
  PciScan scan;
  KernelView kernel;
  driver::DriverFiles files;
  driver::DeviceNodes nodes;
  std::string boot_id;
};

HostFacts read_host_facts(const sys::Host& host, DriverModule module,
                          const SnapshotOptions& options) {
  HostFacts rest;
  rest.root = driver::find_root(host, module.version, options.ld_cache, options.driver);
  auto pci = scan_pci(host);
  if (pci.ok()) {
    rest.scan = *std::move(pci);
  } else {
    rest.scan.notes.push_back(pci.error().text());
  }
  rest.kernel = read_kernel_view(host, std::move(module), rest.scan);
  if (options.files == FindFiles::Yes) {
    rest.files = driver::find_files(host, rest.root);
    rest.nodes = find_nodes(host, rest.kernel.gpus);
  }
  rest.boot_id = host.read_value("/proc/sys/kernel/random/boot_id").value_or("");
  return rest;
}

model::Inventory assemble_inventory(const sys::Host& host, HostFacts rest, NvmlView nvml,
                                    const std::vector<std::uint32_t>& divided) {
  auto inventory = merge(rest.scan, rest.kernel, std::move(nvml.inventory));
  inventory.boot_id = std::move(rest.boot_id);
  auto nvml_version = std::move(inventory.driver.library_version);
  driver::copy_to_inventory(rest.root, inventory.driver);
  if (inventory.driver.library_version.empty())
    inventory.driver.library_version = std::move(nvml_version);
  if (nvml.failure == NVML_ERROR_DRIVER_NOT_LOADED && !inventory.driver.version.empty())
    explain_unreachable_driver(inventory, rest.nodes);
  compare_versions(inventory);
  mark_mig_enabled(divided, inventory);
  add_capability_nodes(host, inventory);
  add_drm_nodes(rest.nodes, inventory.gpus);
  inventory.files = std::move(rest.files.files);
  inventory.nodes = std::move(rest.nodes.nodes);
  for (const auto& problem : rest.nodes.problems) inventory.notes.push_back(problem.text);
  add_notes(inventory.notes, rest.nodes.notes);
  add_notes(inventory.notes, rest.root.notes);
  add_notes(inventory.notes, rest.files.notes);
  inventory.generation = generation_of(inventory);
  return inventory;
}

}  // namespace

Result<Snapshot> take_snapshot(const sys::Host& host, const SnapshotOptions& options) {
  GANTRY_CHECK(check_is_machine(host));
  // Starts NVML first, because it takes longest, and reads everything else meanwhile.
  auto module = read_driver_module(host);
  std::optional<NvmlProbe> child;
  std::vector<std::uint32_t> divided;
  if (options.nvml != NvmlUse::Skip) divided = procfs::gpus_with_mig_instances(host);
  if (options.nvml == NvmlUse::Use || !divided.empty()) {
    child.emplace(host, options);
  }
  auto rest = read_host_facts(host, module, options);
  auto nvml = child ? child->join() : without_nvml();
  const auto failure = nvml.failure;
  // Where no process keeps the driver's state, the start of our own NVML takes longer than the
  // driver's files are waited for.
  if (rest.kernel.silent && child && failure == NVML_SUCCESS)
    rest = read_host_facts(host, module, options);
  return Snapshot{assemble_inventory(host, std::move(rest), std::move(nvml), divided), failure};
}

Result<model::Inventory> snapshot(const sys::Host& host, const SnapshotOptions& options) {
  GANTRY_TRY(auto taken, take_snapshot(host, options));
  return std::move(taken.inventory);
}

Result<model::Inventory> complete_inventory(const sys::Host& host, NvmlView nvml,
                                            const SnapshotOptions& options) {
  GANTRY_CHECK(check_is_machine(host));
  auto rest = read_host_facts(host, read_driver_module(host), options);
  return assemble_inventory(host, std::move(rest), std::move(nvml),
                            procfs::gpus_with_mig_instances(host));
}

struct PrefetchedFacts {
  std::string version;
  HostFacts rest;
};

std::shared_ptr<const PrefetchedFacts> prefetch(const sys::Host& host) {
  auto module = read_driver_module(host);
  auto version = module.version;
  return std::make_shared<const PrefetchedFacts>(
      PrefetchedFacts{std::move(version), read_host_facts(host, std::move(module), {})});
}

Result<model::Inventory> complete_inventory(const sys::Host& host, NvmlView nvml,
                                            const PrefetchedFacts& ahead) {
  const bool still_true = ahead.version == read_driver_module(host).version &&
                          !ahead.rest.kernel.silent &&
                          ahead.rest.kernel.gpus.size() == nvml.inventory.gpus.size();
  if (!still_true) return complete_inventory(host, std::move(nvml));
  GANTRY_CHECK(check_is_machine(host));
  return assemble_inventory(host, ahead.rest, std::move(nvml),
                            procfs::gpus_with_mig_instances(host));
}

}  // namespace gantry::probe
