// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/read_view.hpp"

#include "base/core/text.hpp"
#include "gpu/nvml/gpu_internal.hpp"
#include "gpu/probe/nvml_names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::nvml {
namespace {

using model::Gpu;
using model::Link;
using model::PciePath;

constexpr unsigned kMaxProbedGpus = 256;

struct QueriedGpu {
  nvmlDevice_t device = nullptr;  // null: no handle
  NvLinks nvlinks;
};

void read_versions(const Nvml& nvml, model::Driver& driver) {
  std::array<char, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE> text{};
  const auto size = static_cast<unsigned>(text.size());
  if (nvml.nvmlSystemGetDriverVersion != nullptr &&
      nvml.nvmlSystemGetDriverVersion(text.data(), size) == NVML_SUCCESS) {
    driver.version = to_string(text);
  }
  text = {};
  if (nvml.nvmlSystemGetNVMLVersion != nullptr &&
      nvml.nvmlSystemGetNVMLVersion(text.data(), size) == NVML_SUCCESS) {
    driver.library_version = probe::driver_part_of_nvml_version(to_string(text));
  }
  int cuda = 0;
  const bool newer = nvml.nvmlSystemGetCudaDriverVersion_v2 != nullptr &&
                     nvml.nvmlSystemGetCudaDriverVersion_v2(&cuda) == NVML_SUCCESS;
  if (newer || (nvml.nvmlSystemGetCudaDriverVersion != nullptr &&
                nvml.nvmlSystemGetCudaDriverVersion(&cuda) == NVML_SUCCESS)) {
    driver.cuda_version = probe::format_cuda_version(cuda);
  }
}

Gpu query_gpu(DeviceQuery& query, const probe::NvmlParts& parts, NvLinks& nvlinks) {
  Gpu gpu;
  read_identity(query, gpu);
  read_memory(query, gpu);
  read_mig(query, gpu);
  read_condition(query, gpu.telemetry);
  if (parts.load) read_load(query, gpu.telemetry);
  if (parts.processes) read_processes(query, gpu);
  if (parts.links) nvlinks = read_nvlinks(query);
  auto facts = read_health_facts(query);
  facts.ecc_uncorrected_volatile = gpu.telemetry.ecc_uncorrected_volatile;
  query.add_to(facts);
  gpu.fabric_clique = facts.fabric_clique;
  gpu.health = probe::assess_health(facts);
  return gpu;
}

void note_refusals(const DeviceQuery& query, unsigned index, std::vector<std::string>& notes) {
  if (query.denied_calls().empty()) return;
  notes.push_back(fmt::format("GPU {}: NVML refuses {} to this user; run as root to see the values",
                              index, fmt::join(query.denied_calls(), ", ")));
}

PciePath query_path(const Nvml& nvml, nvmlDevice_t a, nvmlDevice_t b) {
  nvmlGpuTopologyLevel_t level = NVML_TOPOLOGY_SYSTEM;
  if (nvml.nvmlDeviceGetTopologyCommonAncestor == nullptr || a == nullptr || b == nullptr ||
      nvml.nvmlDeviceGetTopologyCommonAncestor(a, b, &level) != NVML_SUCCESS) {
    return PciePath::Unknown;
  }
  return probe::to_pcie_path(level);
}

Link link_between(const Nvml& nvml, const QueriedGpu& a, const QueriedGpu& b, const Gpu& gpu_b) {
  Link link{.pcie = query_path(nvml, a.device, b.device)};
  const auto direct =
      std::count(a.nvlinks.to_devices.begin(), a.nvlinks.to_devices.end(), gpu_b.pci);
  const auto switched = std::min(a.nvlinks.to_switch, b.nvlinks.to_switch);
  link.nvswitch = direct == 0 && switched > 0;
  link.nvlinks = link.nvswitch ? switched : static_cast<int>(direct);
  return link;
}

std::vector<std::vector<Link>> read_links(const Nvml& nvml, const std::vector<QueriedGpu>& asked,
                                          const std::vector<Gpu>& gpus, bool ask) {
  const auto count = gpus.size();
  std::vector<std::vector<Link>> links(count, std::vector<Link>(count));
  for (std::size_t i = 0; i < count; ++i) {
    links[i][i].pcie = PciePath::Self;
    for (std::size_t j = i + 1; ask && j < count; ++j) {
      links[i][j] = links[j][i] = link_between(nvml, asked[i], asked[j], gpus[j]);
    }
  }
  return links;
}

// NVML can give different answers while a GPU falls off the bus.
void recheck_gpus(const Nvml& nvml, const std::vector<QueriedGpu>& asked, unsigned first_count,
                  model::Inventory& view) {
  unsigned count = 0;
  const auto result = nvml.nvmlDeviceGetCount_v2(&count);
  if (result != NVML_SUCCESS) {
    view.notes.push_back(nvml_error(result, "counting GPUs again: nvmlDeviceGetCount_v2").text());
  } else if (count != first_count) {
    view.notes.push_back(
        fmt::format("NVML counted {} GPUs first and {} a moment later", first_count, count));
  }
  for (std::size_t i = 0; i < view.gpus.size(); ++i) {
    if (asked[i].device == nullptr || view.gpus[i].health.state == model::HealthState::Lost)
      continue;
    std::array<char, NVML_DEVICE_UUID_V2_BUFFER_SIZE> uuid{};
    const auto again =
        nvml.nvmlDeviceGetUUID(asked[i].device, uuid.data(), static_cast<unsigned>(uuid.size()));
    auto& health = view.gpus[i].health;
    if (again == NVML_ERROR_GPU_IS_LOST || again == NVML_ERROR_GPU_NOT_FOUND) {
      health = {model::HealthState::Lost, {nvml_error(again, "nvmlDeviceGetUUID").text()}};
    } else if (again == NVML_SUCCESS && to_string(uuid) != view.gpus[i].uuid.text &&
               !view.gpus[i].uuid.text.empty()) {
      health.state = model::HealthState::Degraded;
      health.reasons.push_back(fmt::format("NVML gave the UUID {} first and {} a moment later",
                                           view.gpus[i].uuid.text, to_string(uuid)));
    }
  }
}

void read_gpus(const Nvml& nvml, const probe::NvmlParts& parts, unsigned count,
               model::Inventory& view) {
  std::vector<QueriedGpu> asked(std::min(count, kMaxProbedGpus));
  if (count > kMaxProbedGpus)
    view.notes.push_back(fmt::format("NVML counts {} GPUs, which is more than possible", count));
  for (unsigned i = 0; i < asked.size(); ++i) {
    Gpu gpu;
    const auto result = nvml.nvmlDeviceGetHandleByIndex_v2(i, &asked[i].device);
    if (result == NVML_SUCCESS && asked[i].device != nullptr) {
      DeviceQuery query(nvml, asked[i].device);
      gpu = query_gpu(query, parts, asked[i].nvlinks);
      note_refusals(query, i, view.notes);
    } else {
      asked[i].device = nullptr;
      gpu.health = {model::HealthState::Lost,
                    {nvml_error(result, "nvmlDeviceGetHandleByIndex_v2").text()}};
    }
    gpu.index = static_cast<int>(i);
    view.gpus.push_back(std::move(gpu));
  }
  view.links = read_links(nvml, asked, view.gpus, parts.links);
  recheck_gpus(nvml, asked, count, view);
}

}  // namespace

probe::NvmlView read_view(const Nvml& nvml, const probe::NvmlParts& parts) {
  model::Inventory view;
  const auto started = nvml.nvmlInit_v2();
  if (started != NVML_SUCCESS && started != NVML_ERROR_ALREADY_INITIALIZED) {
    view.driver.nvml_error = nvml_error(started, "nvmlInit_v2").text();
    return {std::move(view), started};
  }
  read_versions(nvml, view.driver);
  unsigned count = 0;
  const auto counted = nvml.nvmlDeviceGetCount_v2(&count);
  if (counted != NVML_SUCCESS) {
    view.driver.nvml_error = nvml_error(counted, "nvmlDeviceGetCount_v2").text();
    return {std::move(view), counted};
  }
  read_gpus(nvml, parts, count, view);
  return {std::move(view)};
}

}  // namespace gantry::nvml
