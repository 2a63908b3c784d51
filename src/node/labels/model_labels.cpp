// SPDX-License-Identifier: Apache-2.0
#include "node/labels/model_labels_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::labels {
namespace {

constexpr std::size_t kKeyLimit = 63;  // of a label's name, without its prefix

std::string_view family_of(const model::ComputeCapability& capability) {
  switch (capability.major) {
    case 1: return "tesla";
    case 2: return "fermi";
    case 3: return "kepler";
    case 5: return "maxwell";
    case 6: return "pascal";
    case 7: return capability.minor < 5 ? "volta" : "turing";
    case 8: return capability.minor < 9 ? "ampere" : "ada-lovelace";
    case 9: return "hopper";
    case 10:
    case 12: return "blackwell";
    case 13: return "rubin";
    default: return "undefined";
  }
}

std::string_view to_string(SharingKind sharing) {
  switch (sharing) {
    case SharingKind::None: return "none";
    case SharingKind::TimeSlicing: return "time-slicing";
    case SharingKind::Mps: return "mps";
  }
  return "none";
}

SharedResource shared_as(const LabelOptions& options, const std::string& resource) {
  const auto found = options.shared.find(resource);
  if (found == options.shared.end() || found->second.replicas <= 1) return {};
  return found->second;
}

std::string product_of(std::string_view name, const SharedResource& shared) {
  auto product = sanitize(name);
  if (shared.replicas > 1 && !shared.renamed) product = sanitize(product + "-SHARED");
  return product;
}

std::uint64_t memory_of(const GpuModel& model) {
  return model.gpus.front()->memory_bytes.value_or(0);
}

bool divided(const model::Gpu& gpu) {
  return gpu.mig.current == model::MigMode::Enabled;
}

void add_sharing(const std::string& prefix, const SharedResource& shared, Labels& labels) {
  labels[prefix + ".replicas"] = fmt::to_string(shared.replicas);
  labels[prefix + ".sharing-strategy"] = to_string(shared.sharing);
}

void add_instance(const std::string& prefix, const model::MigInstance& mig, Labels& labels) {
  const auto set = [&](const char* key, std::uint64_t value) {
    labels[prefix + key] = fmt::to_string(value);
  };
  const auto number = [](int value) { return static_cast<std::uint64_t>(std::max(value, 0)); };
  set(".memory", mig.memory_bytes >> 20U);
  set(".multiprocessors", number(mig.multiprocessors));
  set(".slices.gi", number(mig.gpu_slices));
  set(".slices.ci", number(mig.compute_slices));
  set(".engines.copy", number(mig.engines.copy));
  set(".engines.decoder", number(mig.engines.decoder));
  set(".engines.encoder", number(mig.engines.encoder));
  set(".engines.jpeg", number(mig.engines.jpeg));
  set(".engines.ofa", number(mig.engines.optical_flow));
}

// Labels under the model's own name: on a node with two models, the usual labels describe only one.
void add_own_model(const GpuModel& model, Labels& labels) {
  const auto key = fmt::format("gpu-model.{}", sanitize(model.name));
  constexpr std::size_t kLongest = 7;  // ".memory"
  auto name = key.substr(0, kKeyLimit - kLongest);
  while (!name.empty() && (name.back() == '-' || name.back() == '.' || name.back() == '_'))
    name.pop_back();
  const auto prefix = "nvidia.com/" + name;
  labels[prefix + ".count"] = fmt::to_string(model.gpus.size());
  if (memory_of(model) != 0) labels[prefix + ".memory"] = fmt::to_string(memory_of(model) >> 20U);
}

}  // namespace

std::vector<GpuModel> gpu_models(const model::Inventory& inventory) {
  std::vector<GpuModel> models;
  for (const auto& gpu : inventory.gpus) {
    const auto known = std::find_if(models.begin(), models.end(),
                                    [&](const GpuModel& model) { return model.name == gpu.name; });
    if (known != models.end()) {
      known->gpus.push_back(&gpu);
    } else {
      models.push_back({gpu.name, {&gpu}});
    }
  }
  std::sort(models.begin(), models.end(), [](const GpuModel& a, const GpuModel& b) {
    if (a.gpus.size() != b.gpus.size()) return a.gpus.size() > b.gpus.size();
    if (memory_of(a) != memory_of(b)) return memory_of(a) > memory_of(b);
    return a.name < b.name;
  });
  return models;
}

void add_model_labels(const std::vector<GpuModel>& models, const LabelOptions& options,
                      Labels& labels) {
  const auto& first = models.front();
  const auto& gpu = *first.gpus.front();
  // A GPU that is divided into instances is not offered itself.
  const bool all_divided = std::all_of(first.gpus.begin(), first.gpus.end(),
                                       [](const auto* one) { return divided(*one); });
  const auto shared = all_divided ? SharedResource{} : shared_as(options, "nvidia.com/gpu");
  labels["nvidia.com/gpu.product"] = product_of(first.name, shared);
  labels["nvidia.com/gpu.count"] = fmt::to_string(first.gpus.size());
  add_sharing("nvidia.com/gpu", shared, labels);
  if (all_divided) labels["nvidia.com/gpu.replicas"] = "0";
  if (memory_of(first) != 0)
    labels["nvidia.com/gpu.memory"] = fmt::to_string(memory_of(first) >> 20U);
  if (gpu.compute_capability) {
    labels["nvidia.com/gpu.family"] = family_of(*gpu.compute_capability);
    labels["nvidia.com/gpu.compute.major"] = fmt::to_string(gpu.compute_capability->major);
    labels["nvidia.com/gpu.compute.minor"] = fmt::to_string(gpu.compute_capability->minor);
  }
  if (models.size() < 2) return;
  for (const auto& model : models) add_own_model(model, labels);
}

void add_single_mig(const model::Inventory& inventory, const std::vector<GpuModel>& models,
                    const LabelOptions& options, Labels& labels) {
  const auto& gpus = inventory.gpus;
  if (std::none_of(gpus.begin(), gpus.end(), divided)) return;
  const model::MigInstance* first = nullptr;
  std::size_t count = 0;
  bool valid = std::all_of(gpus.begin(), gpus.end(), divided);
  for (const auto& gpu : gpus) {
    if (gpu.mig.instances.empty()) valid = false;
    for (const auto& mig : gpu.mig.instances) {
      if (first == nullptr) first = &mig;
      if (mig.profile != first->profile) valid = false;
      ++count;
    }
  }
  const auto& name = models.front().name;
  if (!valid || first == nullptr) {
    labels["nvidia.com/gpu.product"] = sanitize(name + "-MIG-INVALID");
    for (const auto* key : {"count", "replicas", "memory"})
      labels[fmt::format("nvidia.com/gpu.{}", key)] = "0";
    labels["nvidia.com/gpu.sharing-strategy"] = "";
    return;
  }
  const auto shared = shared_as(options, "nvidia.com/gpu");
  labels["nvidia.com/gpu.product"] =
      product_of(fmt::format("{}-MIG-{}", name, first->profile), shared);
  labels["nvidia.com/gpu.count"] = fmt::to_string(count);
  add_sharing("nvidia.com/gpu", shared, labels);
  add_instance("nvidia.com/gpu", *first, labels);
}

void add_mixed_mig(const model::Inventory& inventory, const LabelOptions& options, Labels& labels) {
  std::map<std::string, std::size_t> counts;
  for (const auto& gpu : inventory.gpus) {
    for (const auto& mig : gpu.mig.instances) {
      auto profile = mig.profile;  // '+' is not allowed in a label: "1g.18gb+me"
      std::replace(profile.begin(), profile.end(), '+', '.');
      const auto resource = "nvidia.com/mig-" + profile;
      if (++counts[profile] == 1) {
        const auto shared = shared_as(options, resource);
        labels[resource + ".product"] =
            product_of(fmt::format("{}-MIG-{}", gpu.name, profile), shared);
        add_sharing(resource, shared, labels);
        add_instance(resource, mig, labels);
      }
      labels[resource + ".count"] = fmt::to_string(counts[profile]);
    }
  }
}

}  // namespace gantry::labels
