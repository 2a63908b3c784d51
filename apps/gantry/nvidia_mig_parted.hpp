// SPDX-License-Identifier: Apache-2.0
// `gantry` called as nvidia-mig-parted: NVIDIA's mig-parted, with its commands, flags, environment
// variables, files and exit status.
#pragma once

#include <cstdio>

namespace gantry::cli {

int nvidia_mig_parted(int argc, char** argv, std::FILE* out, std::FILE* err);

}  // namespace gantry::cli
