// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/merge.hpp"

#include "gpu/model/enum_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::probe {
namespace {

using model::Gpu;
using model::HealthState;
using model::Inventory;
using model::PciePath;

constexpr std::string_view kNothing = "nothing";

bool has_address(const Gpu& gpu) {
  return gpu.pci != model::PciAddress{};
}

std::string describe_gpu(const Gpu& gpu) {
  return fmt::format("GPU {}", gpu.pci.sysfs());
}

// Matches each GPU of NVML with the same GPU of the kernel.
class GpuPairs {
 public:
  GpuPairs(const std::vector<Gpu>& nvml, const std::vector<Gpu>& kernel)
      : of_(nvml.size()), taken_(kernel.size(), false) {
    match(nvml, kernel,
          [](const Gpu& n, const Gpu& k) { return has_address(n) && n.pci == k.pci; });
    match(nvml, kernel,
          [](const Gpu& n, const Gpu& k) { return !n.uuid.text.empty() && n.uuid == k.uuid; });
    // Without a handle there is nothing to identify it. Both views are in PCI order, so it is
    // matched with the next free GPU.
    match(nvml, kernel,
          [](const Gpu& n, const Gpu&) { return !has_address(n) && n.uuid.text.empty(); });
  }

  std::optional<std::size_t> kernel_of(std::size_t nvml_index) const { return of_[nvml_index]; }
  bool taken(std::size_t kernel_index) const { return taken_[kernel_index]; }

 private:
  template <class Same>
  void match(const std::vector<Gpu>& nvml, const std::vector<Gpu>& kernel, Same same) {
    for (std::size_t n = 0; n < nvml.size(); ++n) {
      for (std::size_t k = 0; k < kernel.size() && !of_[n]; ++k) {
        if (taken_[k] || !same(nvml[n], kernel[k])) continue;
        of_[n] = k;
        taken_[k] = true;
      }
    }
  }
  std::vector<std::optional<std::size_t>> of_;
  std::vector<bool> taken_;
};

class Merger {
 public:
  Merger(const PciScan& pci, const KernelView& kernel, Inventory nvml)
      : pci_(pci), kernel_(kernel), out_(std::move(nvml)) {}

  Inventory run() {
    merge_driver();
    const bool answered = out_.driver.nvml_error.empty();
    if (answered) {
      merge_gpus();
    } else {
      out_.gpus = kernel_.gpus;
      out_.links.clear();
    }
    for (std::size_t i = 0; i < out_.gpus.size(); ++i) out_.gpus[i].index = static_cast<int>(i);
    merge_links();
    for (const auto& device : pci_.devices) out_.functions.push_back(device.function);
    auto notes = kernel_.notes;
    notes.insert(notes.end(), pci_.notes.begin(), pci_.notes.end());
    notes.insert(notes.end(), out_.notes.begin(), out_.notes.end());
    out_.notes = std::move(notes);
    return std::move(out_);
  }

 private:
  void add_discrepancy(std::string what, std::string_view kernel, std::string_view nvml) {
    out_.differences.push_back({std::move(what), std::string(kernel), std::string(nvml)});
  }

  void merge_driver() {
    auto& driver = out_.driver;
    const auto& module = kernel_.module;
    if (module.loaded && !module.version.empty() && !driver.version.empty() &&
        module.version != driver.version) {
      add_discrepancy("driver version", module.version, driver.version);
    }
    if (!module.loaded && !out_.gpus.empty())
      add_discrepancy("kernel module", "not loaded", "answers");
    driver.version = module.version;
    driver.flavour = module.flavour;
  }

  void merge_gpus() {
    const GpuPairs pairs(out_.gpus, kernel_.gpus);
    for (std::size_t i = 0; i < out_.gpus.size(); ++i) {
      if (const auto same = pairs.kernel_of(i)) {
        merge_gpu(out_.gpus[i], kernel_.gpus[*same]);
      } else {
        only_in_nvml(out_.gpus[i]);
      }
    }
    for (std::size_t k = 0; k < kernel_.gpus.size(); ++k) {
      if (!pairs.taken(k)) only_in_kernel(kernel_.gpus[k]);
    }
  }

  // Compares both values; NVML's `mine` stays if both are known.
  void reconcile(const std::string& what, std::string& mine, const std::string& kernel) {
    if (mine.empty()) {
      mine = kernel;
    } else if (!kernel.empty() && kernel != mine) {
      add_discrepancy(what, kernel, mine);
    }
  }

  // The kernel's spelling is the one that /proc and /sys have: on Hyper-V, NVML shows 32 bits of a
  // domain of which Linux keeps 16.
  void reconcile_address(Gpu& gpu, const Gpu& kernel) {
    auto short_form = gpu.pci;
    short_form.domain &= 0xffffU;
    if (has_address(gpu) && gpu.pci != kernel.pci && short_form != kernel.pci) {
      add_discrepancy(fmt::format("{}: PCI address", gpu.uuid.text), kernel.pci.sysfs(),
                      gpu.pci.sysfs());
    }
    gpu.pci = kernel.pci;
  }

  // For values that both views always have. A missing value is a difference, except for question
  // marks of a driver that has not read the card yet, and for a lost GPU.
  void reconcile_known(const std::string& what, std::string& mine, const std::string& kernel,
                       const Gpu& gpu) {
    const bool damaged =
        std::count(kernel_.incomplete.begin(), kernel_.incomplete.end(), gpu.pci) != 0;
    if (mine.empty() && !kernel.empty() && gpu.health.state != HealthState::Lost) {
      add_discrepancy(what, kernel, kNothing);
    } else if (kernel.empty() && !mine.empty() && damaged) {
      add_discrepancy(what, kNothing, mine);
    }
    reconcile(what, mine, kernel);
  }

  void reconcile_minor(const std::string& what, Gpu& gpu, const Gpu& kernel) {
    const auto text = [](const auto& minor) { return minor ? fmt::to_string(*minor) : ""; };
    auto mine = text(gpu.minor);
    reconcile_known(what, mine, text(kernel.minor), gpu);
    if (!gpu.minor) gpu.minor = kernel.minor;
  }

  void missing_function(const Gpu& gpu) {
    if (!pci_.listed || !has_address(gpu) || pci_.find(gpu.pci) != nullptr) return;
    add_discrepancy(describe_gpu(gpu) + ": PCI function in /sys", "absent", "present");
  }

  void merge_gpu(Gpu& gpu, const Gpu& kernel) {
    reconcile_address(gpu, kernel);
    const auto name = describe_gpu(gpu);
    reconcile_known(name + ": UUID", gpu.uuid.text, kernel.uuid.text, gpu);
    reconcile_known(name + ": name", gpu.name, kernel.name, gpu);
    reconcile_minor(name + ": minor", gpu, kernel);
    reconcile(name + ": VBIOS", gpu.vbios, kernel.vbios);
    reconcile(name + ": GSP firmware", gpu.gsp_firmware, kernel.gsp_firmware);
    missing_function(gpu);
    gpu.numa_node = kernel.numa_node;
    gpu.cpu_list = kernel.cpu_list;
    if (gpu.pci_device_id == 0) gpu.pci_device_id = kernel.pci_device_id;
    if (gpu.pci_subsystem_id == 0) gpu.pci_subsystem_id = kernel.pci_subsystem_id;
    if (kernel.health.state != HealthState::Lost || gpu.health.state == HealthState::Lost) return;
    gpu.health = kernel.health;
  }

  void only_in_nvml(Gpu& gpu) {
    if (!kernel_.module.loaded) return;  // already reported for the module
    add_discrepancy(has_address(gpu) ? describe_gpu(gpu) : fmt::format("GPU {}", gpu.index),
                    "absent", "present");
    const auto* device = pci_.find(gpu.pci);
    if (device == nullptr) return;
    gpu.numa_node = device->function.numa_node;
    gpu.cpu_list = device->cpu_list;
  }

  void only_in_kernel(const Gpu& kernel) {
    add_discrepancy(describe_gpu(kernel), "present", "absent");
    auto gpu = kernel;
    if (gpu.health.state != HealthState::Lost) {
      const auto node = gpu.minor ? fmt::format("/dev/nvidia{}", *gpu.minor) : "its device node";
      gpu.health = {
          HealthState::Degraded,
          {fmt::format("the kernel has this GPU but NVML does not: is {} there, and may it be "
                       "opened?",
                       node)}};
    }
    out_.gpus.push_back(std::move(gpu));
  }

  // NVML knows boards and NVLinks; the kernel's tree of bridges is used where NVML has no answer.
  void merge_links() {
    const auto known = out_.links.size();
    const auto count = out_.gpus.size();
    out_.links.resize(count);
    for (auto& row : out_.links) row.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      out_.links[i][i].pcie = PciePath::Self;
      for (std::size_t j = i + 1; j < count; ++j) {
        auto& link = out_.links[i][j];
        const auto kernel = kernel_path(out_.gpus[i], out_.gpus[j]);
        if (i < known && j < known) compare_paths(i, j, kernel, link.pcie);
        if (link.pcie == PciePath::Unknown) link.pcie = kernel;
        out_.links[j][i] = link;
      }
    }
  }

  PciePath kernel_path(const Gpu& a, const Gpu& b) const {
    const auto* left = pci_.find(a.pci);
    const auto* right = pci_.find(b.pci);
    if (left == nullptr || right == nullptr) return PciePath::Unknown;
    return pcie_path(pci_, *left, *right);
  }

  void compare_paths(std::size_t i, std::size_t j, PciePath kernel, PciePath nvml) {
    if (kernel == PciePath::Unknown || nvml == PciePath::Unknown || kernel == nvml) return;
    // Two GPUs on one board are behind its switch: both answers are right.
    if (nvml == PciePath::SameBoard && kernel >= PciePath::MultiSwitch) return;
    add_discrepancy(fmt::format("path between GPU {} and GPU {}", i, j), model::to_string(kernel),
                    model::to_string(nvml));
  }

  const PciScan& pci_;
  const KernelView& kernel_;
  Inventory out_;
};

}  // namespace

Inventory merge(const PciScan& pci, const KernelView& kernel, Inventory nvml) {
  return Merger(pci, kernel, std::move(nvml)).run();
}

}  // namespace gantry::probe
