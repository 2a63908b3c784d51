// SPDX-License-Identifier: Apache-2.0
// gantry agent, and the names under which other people's manifests start it.
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

// For --help and completion; what runs is agent().
void add_agent(CLI::App& app, Context& context, Action& chosen);

}  // namespace gantry::cli
