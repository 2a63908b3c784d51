// SPDX-License-Identifier: Apache-2.0
// `gantry` called as nvidia-driver-installer: Google's installer, with its variables, its cache
// file and its log. The options of `gantry driver install` are taken, too, and go before the
// variables.
#pragma once

#include <cstdio>

namespace gantry::cli {

int nvidia_driver_installer(int argc, char** argv, std::FILE* out, std::FILE* err);

}  // namespace gantry::cli
