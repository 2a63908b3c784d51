// SPDX-License-Identifier: Apache-2.0
// The labels of a node with GPUs, under the names that GPU feature discovery gave them. The same
// machine always gives the same labels: on a node with several models, the model that most GPUs
// have (then the one with more memory, then by name) speaks under the classic names, and each model
// has labels of its own beside it, nvidia.com/gpu-model.NAME.count.
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

// How one resource is shared: "nvidia.com/gpu", "nvidia.com/mig-1g.18gb".
struct SharedResource {
  SharingKind sharing = SharingKind::None;
  int replicas = 1;
  bool renamed = false;  // offered as NAME.shared: the product then keeps its name
};

struct VgpuHost {  // of a guest; see vgpu.hpp
  std::string host_driver_version;
  std::string host_driver_branch;
};

struct LabelOptions {
  MigStrategy mig = MigStrategy::None;
  std::map<std::string, SharedResource> shared;  // by resource name
  std::string machine;                           // DMI product name, as it is; "" when unknown
  std::optional<std::int64_t> timestamp;         // nullopt: no such label
  std::optional<VgpuHost> vgpu;                  // nullopt: not a vGPU guest
};

// A node without GPUs has the timestamp and vGPU labels only.
Labels make_labels(const model::Inventory& inventory, const LabelOptions& options);

// What a label's value may be: blanks joined by '-', other characters dropped, at most 63, ending
// in a letter or digit.
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
