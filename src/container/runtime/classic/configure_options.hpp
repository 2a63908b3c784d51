// SPDX-License-Identifier: Apache-2.0
// The command line of `nvidia-container-cli [...] configure [...] ROOTFS`, in the form that hooks
// and documentation have used since libnvidia-container 1.0.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/container_request.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

// What to do with the CUDA forward-compatibility libraries of an image. Their files are never
// mounted: "mount" has the same effect as "ldconfig".
enum class CudaCompat : std::uint8_t { Ldconfig, Disabled };

struct ConfigureOptions {
  // Options before the command.
  std::string debug_file;
  bool load_kernel_modules = false;
  bool no_create_imex_channels = false;
  std::optional<std::string> user;  // ignored: for a driver process that we do not need
  std::string root;                 // the machine is below this directory
  std::string ldcache;              // of the host; ignored: the inventory has the libraries

  // Options after the command.
  std::optional<pid_t> pid;
  model::ContainerRequest request{.source = model::RequestSource::CommandLine, .capabilities = {}};
  std::string ldconfig;
  CudaCompat cuda_compat = CudaCompat::Ldconfig;
  bool no_cgroups = false;
  bool no_device_binds = false;
  bool no_persistenced = false;
  bool no_fabricmanager = false;
  std::string rootfs;
};

// `arguments` without the program's name. Invalid for a wrong argument, with a text that starts
// with upstream's stage ("input error: ...").
Result<ConfigureOptions> parse_configure(std::span<const std::string> arguments);

// The text of --help, generated from the parser's table.
std::string configure_help();
bool asks_for_help(std::span<const std::string> arguments);

// Returns true if the command is `configure`.
bool is_configure(std::span<const std::string> arguments);

}  // namespace gantry::runtime
