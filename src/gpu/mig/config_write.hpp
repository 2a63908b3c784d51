// SPDX-License-Identifier: Apache-2.0
// Writes the file of config_file.hpp: from the present state of GPUs, and from what they can do.
#pragma once

#include "gpu/mig/config_file.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::mig {

// One configuration, `label`, with the present state. GPUs in the same state are one entry;
// `devices: all` and no device-filter where that means the same.
MigConfigFile export_config(const std::vector<MigGpu>& gpus, std::string_view label = "current");

// The conventional configurations: all-disabled, all-enabled, all-balanced, and for each profile
// one with as many instances as the GPU can have: all-1g.18gb, all-1g.18gb.me. If there are several
// models, each entry has the device-filter of its models. NotFound if no GPU has MIG.
Result<MigConfigFile> generate_config(const std::vector<MigGpu>& gpus);

std::string to_yaml(const MigConfigFile& config);
std::string to_json(const MigConfigFile& config);

}  // namespace gantry::mig
