// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>

namespace gantry::cli {

// The whole program but for the process around it: picks the face by argv[0], parses, runs one
// command, returns its exit status.
int main_program(int argc, char** argv, std::FILE* out, std::FILE* err);

}  // namespace gantry::cli
