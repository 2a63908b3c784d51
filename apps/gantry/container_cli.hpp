// SPDX-License-Identifier: Apache-2.0
// `gantry` called as nvidia-container-cli: info and list in the form that scripts and notes know.
#pragma once

#include "base/result.hpp"
#include "model/inventory.hpp"

#include <cstdio>
#include <string>
#include <vector>

namespace gantry::cli {

int container_cli(int argc, char** argv, std::FILE* out, std::FILE* err);

std::string container_info_text(const model::Inventory& machine);
std::string container_info_csv(const model::Inventory& machine);

struct ContainerListOptions {
  std::string devices;  // comma list of ids; "" = not asked for
  bool libraries = false;
  bool binaries = false;
  bool ipcs = false;
  bool firmwares = false;
  bool compat32 = false;
  std::string mig_config;  // ids or "all"
  std::string mig_monitor;
  std::vector<std::string> imex_channels;
  bool no_persistenced = false;
  bool no_fabricmanager = false;
};

// One host path a line: control devices, GPUs, MIG, IMEX, binaries, libraries, 32-bit libraries,
// sockets, firmware. No flag at all lists everything. Fails on a device id that nobody has.
Result<std::string> container_list_text(const model::Inventory& machine,
                                        const ContainerListOptions& options);

}  // namespace gantry::cli
