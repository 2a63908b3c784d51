// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>

namespace gantry::cli {

// kubectl-inspect-gpushare, which `kubectl inspect gpushare` runs.
int inspect_gpushare(int argc, char** argv, std::FILE* out, std::FILE* err);

}  // namespace gantry::cli
