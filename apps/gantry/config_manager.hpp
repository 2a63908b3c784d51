// SPDX-License-Identifier: Apache-2.0
// config-manager: the small program beside NVIDIA's device plugin that gives each node its
// configuration. Ours chooses by itself; this is for manifests that have it as a container.
#pragma once

#include <cstdio>

namespace gantry::cli {

int config_manager(int argc, char** argv, std::FILE* out, std::FILE* err);

}  // namespace gantry::cli
