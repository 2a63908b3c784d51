// SPDX-License-Identifier: Apache-2.0
#include "gpu/health/compute.hpp"

#include "base/core/text.hpp"
#include "gpu/model/fabric_reason.hpp"
#include "gpu/procfs/device_numbers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace gantry::health {
namespace {

using Kind = ComputeObstacleKind;

constexpr std::string_view kFabricManagerComm = "nv-fabricmanage";  // comm has 15 characters

bool has_nvswitch(const model::Inventory& inventory) {
  return std::any_of(inventory.functions.begin(), inventory.functions.end(),
                     [](const auto& function) { return function.is_nvswitch(); });
}

// A container without the host's processes sees no kernel thread.
bool sees_all_processes(const sys::Host& host) {
  return host.read_value("/proc/2/comm").value_or("") == "kthreadd";
}

std::optional<bool> fabric_manager_runs(const sys::Host& host) {
  const auto names = host.list("/proc");
  if (!names.ok()) return std::nullopt;
  for (const auto& name : *names) {
    if (!parse_u64(name)) continue;
    if (host.read_value(fmt::format("/proc/{}/comm", name)) == kFabricManagerComm) return true;
  }
  return sees_all_processes(host) ? std::optional(false) : std::nullopt;
}

class ObstacleFinder {
 public:
  ObstacleFinder(const model::Inventory& inventory, const ComputeFacts& facts)
      : inventory_(inventory), facts_(facts), all_(inventory.gpus.size()) {
    std::iota(all_.begin(), all_.end(), std::size_t{0});
  }

  std::vector<ComputeObstacle> run() {
    const auto& driver = inventory_.driver;
    if (driver.version.empty() && (!driver.nvml_error.empty() || all_.empty())) {
      if (!all_.empty()) add(Kind::DriverNotLoaded, all_, "the driver is not loaded", kLoadDriver);
      return std::move(found_);
    }
    judge_versions();
    judge_nodes();
    if (found_.empty() && !driver.nvml_error.empty()) {
      add(Kind::NvmlSilent, all_, fmt::format("NVML does not answer: {}", driver.nvml_error),
          "gantry doctor");
    }
    judge_uvm();
    judge_fabric();
    judge_lost();
    judge_modes();
    return std::move(found_);
  }

 private:
  void add(Kind kind, std::vector<std::size_t> gpus, std::string cause, std::string_view remedy) {
    found_.push_back({kind, std::move(gpus), std::move(cause), std::string(remedy)});
  }

  // The nodes may be below another directory than /dev.
  bool has_node(std::string_view name) const {
    return std::any_of(inventory_.nodes.begin(), inventory_.nodes.end(), [&](const auto& node) {
      return std::string_view(node.path).substr(node.path.rfind('/') + 1) == name;
    });
  }

  template <class Predicate>
  std::vector<std::size_t> select(Predicate holds) const {
    std::vector<std::size_t> gpus;
    std::copy_if(all_.begin(), all_.end(), std::back_inserter(gpus),
                 [&](std::size_t i) { return holds(inventory_.gpus[i]); });
    return gpus;
  }

  void judge_versions() {
    const auto& driver = inventory_.driver;
    if (driver.library_version.empty() || driver.version == driver.library_version) return;
    add(Kind::VersionMismatch, all_,
        fmt::format("the module is {}, the libraries are {}", driver.version,
                    driver.library_version),
        kReloadDriver);
  }

  void judge_nodes() {
    const bool control = has_node("nvidiactl");
    std::vector<std::string> missing;
    std::string command = "sudo nvidia-modprobe";  // creates nvidiactl with every GPU's node
    if (!control) missing.emplace_back("/dev/nvidiactl");
    const auto without = select([&](const model::Gpu& gpu) {
      return gpu.minor && !has_node(fmt::format("nvidia{}", *gpu.minor));
    });
    for (const auto i : without) {
      missing.push_back(fmt::format("/dev/nvidia{}", *inventory_.gpus[i].minor));
      command += fmt::format(" -c {}", *inventory_.gpus[i].minor);
    }
    if (missing.empty()) return;
    if (without.empty()) command += " -c 255";
    add(Kind::NodesMissing, control ? without : all_,
        fmt::format("{} {} missing", fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are"),
        command);
  }

  void judge_uvm() {
    if (!facts_.uvm_loaded) {
      add(Kind::UvmNotLoaded, all_, "nvidia_uvm is not loaded: nvidia-smi works, CUDA does not",
          kLoadUvm);
    } else if (!has_node("nvidia-uvm")) {
      add(Kind::UvmNodeMissing, all_, "/dev/nvidia-uvm is missing: nvidia-smi works, CUDA does not",
          kMakeUvmNodes);
    }
  }

  void judge_fabric() {
    if (has_nvswitch(inventory_) && !facts_.fabric_manager_runs.value_or(true)) {
      add(Kind::FabricNotReady, all_,
          "this machine has NVSwitches, but the fabric manager does not run", kStartFabricManager);
      return;
    }
    auto waiting = select([](const model::Gpu& gpu) {
      const auto& reasons = gpu.health.reasons;
      return std::any_of(reasons.begin(), reasons.end(), model::is_about_fabric);
    });
    if (waiting.empty()) return;
    add(Kind::FabricNotReady, std::move(waiting),
        fmt::format("{} is not ready: CUDA says \"system not yet initialized\"",
                    model::kNvSwitchFabric),
        kStartFabricManager);
  }

  void judge_lost() {
    for (const auto i :
         select([](const auto& gpu) { return gpu.health.state == model::HealthState::Lost; })) {
      const auto& gpu = inventory_.gpus[i];
      add(Kind::GpuLost, {i},
          fmt::format("the GPU does not answer: {}",
                      gpu.health.reasons.empty() ? "no reason given" : gpu.health.reasons.front()),
          fmt::format("sudo nvidia-smi --gpu-reset -i {} || sudo reboot", gpu.index));
    }
  }

  void judge_modes() {
    for (const auto i :
         select([](const auto& gpu) { return to_lower(gpu.compute_mode) == "prohibited"; })) {
      add(Kind::Prohibited, {i}, "the GPU's compute mode is Prohibited",
          fmt::format("sudo nvidia-smi -i {} -c 0", inventory_.gpus[i].index));
    }
  }

  const model::Inventory& inventory_;
  const ComputeFacts& facts_;
  std::vector<std::size_t> all_;
  std::vector<ComputeObstacle> found_;
};

}  // namespace

ComputeFacts read_compute_facts(const sys::Host& host, const model::Inventory& inventory) {
  ComputeFacts facts;
  const auto devices = host.read("/proc/devices", std::size_t{1} << 20);
  // If the file cannot be read, we do not know that the module is missing.
  if (devices.ok()) {
    facts.uvm_loaded = procfs::parse_proc_devices(*devices).of("nvidia-uvm").has_value();
  }
  if (has_nvswitch(inventory)) facts.fabric_manager_runs = fabric_manager_runs(host);
  return facts;
}

std::vector<ComputeObstacle> find_compute_obstacles(const model::Inventory& inventory,
                                                    const ComputeFacts& facts) {
  return ObstacleFinder(inventory, facts).run();
}

const ComputeObstacle* obstacle_of(const std::vector<ComputeObstacle>& obstacles, std::size_t gpu) {
  const auto found =
      std::find_if(obstacles.begin(), obstacles.end(), [&](const ComputeObstacle& obstacle) {
        return std::find(obstacle.gpus.begin(), obstacle.gpus.end(), gpu) != obstacle.gpus.end();
      });
  return found == obstacles.end() ? nullptr : &*found;
}

const ComputeObstacle* find_obstacle(const std::vector<ComputeObstacle>& obstacles,
                                     ComputeObstacleKind kind) {
  const auto found = std::find_if(obstacles.begin(), obstacles.end(),
                                  [&](const auto& obstacle) { return obstacle.kind == kind; });
  return found == obstacles.end() ? nullptr : &*found;
}

}  // namespace gantry::health
