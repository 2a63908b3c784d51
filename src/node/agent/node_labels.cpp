// SPDX-License-Identifier: Apache-2.0
#include "node/agent/node_labels.hpp"

#include "node/labels/vgpu.hpp"

namespace gantry::agent {
namespace {

labels::MigStrategy mig_of(options::MigStrategy strategy) {
  switch (strategy) {
    case options::MigStrategy::None: return labels::MigStrategy::None;
    case options::MigStrategy::Single: return labels::MigStrategy::Single;
    case options::MigStrategy::Mixed: break;
  }
  return labels::MigStrategy::Mixed;
}

std::map<std::string, labels::SharedResource> shared(const options::Sharing& sharing) {
  std::map<std::string, labels::SharedResource> found;
  if (sharing.kind == options::SharingKind::None) return found;
  const auto kind = sharing.kind == options::SharingKind::Mps ? labels::SharingKind::Mps
                                                              : labels::SharingKind::TimeSlicing;
  for (const auto& resource : sharing.resources)
    found[resource.name] = {.sharing = kind,
                            .replicas = static_cast<int>(resource.replicas),
                            .renamed = sharing.rename_by_default || !resource.rename.empty()};
  return found;
}

}  // namespace

labels::Labels node_labels(const sys::Host& host, const model::Inventory& inventory,
                           const options::Options& options, std::int64_t started_unix_s) {
  labels::LabelOptions wanted{.mig = mig_of(options.mig_strategy),
                              .shared = shared(options.sharing)};
  wanted.machine = labels::read_machine_type(host, options.features.machine_type_file);
  if (!options.features.no_timestamp) wanted.timestamp = started_unix_s;
  wanted.vgpu = labels::read_vgpu(host);
  return labels::make_labels(inventory, wanted);
}

}  // namespace gantry::agent
