// SPDX-License-Identifier: Apache-2.0
// The labels of a node with GPUs, with the names that GPU feature discovery uses. The same machine
// always gives the same labels. On a node with several models, the model of most GPUs (then with
// the most memory, then by name) is used for the usual names, and each model has its own labels in
// addition: nvidia.com/gpu-model.NAME.count.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/inventory.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::labels {

using Labels = std::map<std::string, std::string>;

enum class MigStrategy : std::uint8_t { None, Single, Mixed };
enum class SharingKind : std::uint8_t { None, TimeSlicing, Mps };

// How a resource such as "nvidia.com/gpu" or "nvidia.com/mig-1g.18gb" is shared.
struct SharedResource {
  SharingKind sharing = SharingKind::None;
  int replicas = 1;
  bool renamed = false;  // offered as NAME.shared; then the product label keeps its name
};

struct VgpuHost {  // in a guest; see vgpu.hpp
  std::string host_driver_version;
  std::string host_driver_branch;
};

struct LabelOptions {
  MigStrategy mig = MigStrategy::None;
  std::map<std::string, SharedResource> shared;  // by resource name
  std::string machine;                           // DMI product name, unchanged; "" if unknown
  std::optional<std::int64_t> timestamp;         // nullopt: no timestamp label
  std::optional<VgpuHost> vgpu;                  // nullopt: not a vGPU guest
};

// A node without GPUs has only the timestamp and vGPU labels. A lost GPU does not count, and
// without NVML none does.
Labels make_labels(const model::Inventory& inventory, const LabelOptions& options);

// Makes a valid label value: joins blanks with '-', drops other characters, at most 63 characters,
// ending in a letter or digit.
std::string sanitize(std::string_view text);

// "key=value" lines, sorted.
std::string to_lines(const Labels& labels);

// A NodeFeature object (nfd.k8s-sigs.io/v1alpha1) as JSON.
struct NodeFeatureOwner {
  std::string api_version, kind, name, uid;
  bool controller = false;
};
struct NodeFeatureOptions {
  std::string node;
  std::string name_space = "default";
  std::vector<NodeFeatureOwner> owners;
};
std::string node_feature_name(std::string_view node);  // "nvidia-features-for-NODE"
std::string to_node_feature(const Labels& labels, const NodeFeatureOptions& options);

}  // namespace gantry::labels
