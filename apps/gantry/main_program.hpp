// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>

namespace gantry::cli {

// The whole program except for process setup. Chooses the command set by argv[0], parses the
// command line, runs one command and returns its exit status.
int main_program(int argc, char** argv, std::FILE* out, std::FILE* err);

}  // namespace gantry::cli
