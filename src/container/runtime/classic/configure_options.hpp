// SPDX-License-Identifier: Apache-2.0
// The command line of `nvidia-container-cli [...] configure [...] ROOTFS`, in the form that hooks
// and notes have used since libnvidia-container 1.0.
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

// What to do with CUDA forward-compatibility libraries that an image brings. None of their files is
// ever mounted: "mount" means what "ldconfig" means.
enum class CudaCompat : std::uint8_t { Ldconfig, Disabled };

struct ConfigureOptions {
  // Before the command.
  std::string debug_file;
  bool load_kernel_modules = false;
  bool no_create_imex_channels = false;
  std::optional<std::string> user;  // of a driver process that we do not need
  std::string root;                 // the machine below this directory
  std::string ldcache;              // the host's; libraries are known from the inventory

  // After it.
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

// `arguments` without the program's name. Invalid with a text that begins with upstream's stage
// ("input error: ..."), for whatever could not be meant.
Result<ConfigureOptions> parse_configure(std::span<const std::string> arguments);

// What --help says, made of the table that is parsed by.
std::string configure_help();
bool asks_for_help(std::span<const std::string> arguments);

// Whether the line is one for `configure` at all.
bool is_configure(std::span<const std::string> arguments);

}  // namespace gantry::runtime
