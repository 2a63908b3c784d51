// SPDX-License-Identifier: Apache-2.0
// gantry agent, and the program names by which other projects' manifests start it.
#pragma once

#include "base/core/result.hpp"
#include "gantry/command.hpp"

#include <cstdio>

namespace gantry::cli {

int agent(int argc, char** argv, std::FILE* out, std::FILE* err);
int device_plugin(int argc, char** argv, std::FILE* out, std::FILE* err);      // NVIDIA's
int gke_device_plugin(int argc, char** argv, std::FILE* out, std::FILE* err);  // GKE's
int gpushare_device_plugin(int argc, char** argv, std::FILE* out, std::FILE* err);
int feature_discovery(int argc, char** argv, std::FILE* out, std::FILE* err);
int mps_control_daemon(int argc, char** argv, std::FILE* out, std::FILE* err);  // NVIDIA's

// Declares the command for --help and completion only; agent() runs it.
void add_agent(CLI::App& app, Context& context, Action& chosen);

}  // namespace gantry::cli
