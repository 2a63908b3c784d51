// SPDX-License-Identifier: Apache-2.0
// `gantry` called as nvidia-vgpu-dm: apply and assert of NVIDIA's vgpu-device-manager, with its
// flags, environment variables and exit status.
#pragma once

#include <cstdio>

namespace gantry::cli {

int nvidia_vgpu_dm(int argc, char** argv, std::FILE* out, std::FILE* err);

}  // namespace gantry::cli
