// SPDX-License-Identifier: Apache-2.0
// In which order the driver's modules are loaded and unloaded, and what keeps one from being
// unloaded. Values in, values out.
#pragma once

#include "install/kernel_module/loaded_modules.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::kernel_module {

// All modules of the driver, as the kernel names them; each after those that it uses.
std::span<const std::string_view> driver_modules();
// The name may have dashes.
bool is_driver_module(std::string_view name);

// Those of `wanted` that are not loaded, in the order in which they can be loaded. Names as they
// are in `wanted`; a module that is not the driver's comes last.
std::vector<std::string> load_order(std::span<const std::string> wanted,
                                    const std::vector<LoadedModule>& loaded);

struct UnloadBlocker {
  enum class Reason : std::uint8_t {
    ForeignModule,  // a module that is not the driver's uses it
    References,     // open device files, or the kernel's console on a GPU
    Permanent,      // the module, or the kernel, does not allow it
    Changing        // it is being loaded or unloaded
  };
  Reason reason = Reason::References;
  std::string module;              // of the driver
  std::vector<std::string> users;  // ForeignModule: their names
  int references = 0;              // References: how many
  bool operator==(const UnloadBlocker&) const = default;
};

// "module nvidia is used by the module nvidia_fs2"
std::string describe(const UnloadBlocker& blocker);

struct UnloadOrder {
  std::vector<std::string> modules;  // users before what they use
  std::vector<UnloadBlocker> blockers;
  bool possible() const { return blockers.empty(); }
};

// Of all loaded modules of the driver.
UnloadOrder unload_order(const std::vector<LoadedModule>& loaded);

}  // namespace gantry::kernel_module
