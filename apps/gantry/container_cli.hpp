// SPDX-License-Identifier: Apache-2.0
// `gantry` called as nvidia-container-cli: info and list, with the output format that existing
// scripts expect.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/inventory.hpp"
#include "gpu/probe/snapshot.hpp"

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace gantry::cli {

int container_cli(int argc, char** argv, std::FILE* out, std::FILE* err);

struct ContainerCliFailure {
  std::string error;   // "initialization error: ...", in libnvidia-container's words
  std::string remedy;  // one sentence with the command that helps; "": none
};
// Why the driver cannot be used; nullopt if it can.
std::optional<ContainerCliFailure> initialization_failure(const probe::Snapshot& machine);

std::string container_version_text();

std::string container_info_text(const model::Inventory& machine);
std::string container_info_csv(const model::Inventory& machine);

struct ContainerListOptions {
  std::optional<std::string> devices;  // comma list of ids
  bool libraries = false;
  bool binaries = false;
  bool ipcs = false;
  bool firmwares = false;
  bool compat32 = false;
  std::optional<std::string> mig_config;  // comma list of GPUs
  std::optional<std::string> mig_monitor;
  std::vector<std::string> imex_channels;
  bool no_persistenced = false;
  bool no_fabricmanager = false;
};

// Prints one host path per line: control devices, GPUs, MIG, IMEX, binaries, libraries, 32-bit
// libraries, sockets, firmware. Without any flag it lists everything. Fails on an unknown device
// id.
Result<std::string> container_list_text(const model::Inventory& machine,
                                        const ContainerListOptions& options);

}  // namespace gantry::cli
