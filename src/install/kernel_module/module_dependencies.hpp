// SPDX-License-Identifier: Apache-2.0
// The modules of the kernel that a module needs, for machines and containers without modprobe.
#pragma once

#include "base/sys/host.hpp"
#include "install/kernel_module/loaded_modules.hpp"
#include "install/kernel_module/module_file.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::kernel_module {

// modules.dep and modules.builtin of one kernel.
struct ModuleIndex {
  struct Entry {
    std::string path;                // below /lib/modules/RELEASE, as depmod wrote it
    std::vector<std::string> needs;  // paths, in the order in which they are unloaded
    bool operator==(const Entry&) const = default;
  };
  std::map<std::string, Entry, std::less<>> modules;  // by name, with underscores
  std::set<std::string, std::less<>> builtin;         // part of the kernel itself
};

ModuleIndex parse_module_index(std::string_view modules_dep, std::string_view modules_builtin);
Result<ModuleIndex> read_module_index(const sys::Host& host, std::string_view release);

// Paths of the kernel's modules that must be loaded before `file`, in that order: without those
// that are loaded or built in, and without the driver's own. NotFound names the first module that
// this kernel does not have.
Result<std::vector<std::string>> files_to_load_first(const ModuleFile& file,
                                                     const ModuleIndex& index,
                                                     const std::vector<LoadedModule>& loaded,
                                                     std::string_view release);

}  // namespace gantry::kernel_module
