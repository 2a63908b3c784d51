// SPDX-License-Identifier: Apache-2.0
// The modules that the kernel has loaded: /proc/modules.
#pragma once

#include "base/sys/host.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::kernel_module {

struct LoadedModule {
  std::string name;  // with underscores: "nvidia_uvm"
  std::uint64_t bytes = 0;
  int references = 0;  // users and all else that holds it; -1 if the kernel cannot unload modules
  std::vector<std::string> users;  // modules
  std::string state;               // "Live", "Loading" or "Unloading"
  bool permanent = false;          // cannot be unloaded
  bool operator==(const LoadedModule&) const = default;
};

// The kernel writes a module's name with underscores, files and people often with dashes:
// "nvidia-uvm" -> "nvidia_uvm".
std::string module_name(std::string_view name);

// Skips lines that are not of this format.
std::vector<LoadedModule> parse_modules(std::string_view text);
// Empty, not an error, if the kernel has no loadable modules.
Result<std::vector<LoadedModule>> read_loaded_modules(const sys::Host& host);

// nullptr if it is not loaded. The name may have dashes.
const LoadedModule* find_loaded(const std::vector<LoadedModule>& loaded, std::string_view name);

}  // namespace gantry::kernel_module
