// SPDX-License-Identifier: Apache-2.0
// config-manager: the small program that runs next to NVIDIA's device plugin and gives each node
// its configuration. Gantry's agent chooses by itself; this program is for manifests that run
// config-manager as a container.
#pragma once

#include <cstdio>

namespace gantry::cli {

int config_manager(int argc, char** argv, std::FILE* out, std::FILE* err);

}  // namespace gantry::cli
