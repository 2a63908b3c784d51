// SPDX-License-Identifier: Apache-2.0
// Labels of the GPUs, by model and by MIG profile.
#pragma once

#include "node/labels/labels.hpp"

#include <vector>

namespace gantry::labels {

struct GpuModel {
  std::string name;                     // from NVML
  std::vector<const model::Gpu*> gpus;  // at least one
};

// The model for the usual label names comes first: most GPUs, then most memory, then by name.
std::vector<GpuModel> gpu_models(const model::Inventory& inventory);

void add_model_labels(const std::vector<GpuModel>& models, const LabelOptions& options,
                      Labels& labels);

// Strategy single: the instances count as the GPUs. Overwrites the labels of add_models; does
// nothing if no GPU is divided.
void add_single_mig(const model::Inventory& inventory, const std::vector<GpuModel>& models,
                    const LabelOptions& options, Labels& labels);
// Strategy mixed: adds labels for each profile to those of the GPUs.
void add_mixed_mig(const model::Inventory& inventory, const LabelOptions& options, Labels& labels);

}  // namespace gantry::labels
