// SPDX-License-Identifier: Apache-2.0
// Modules of the kernel itself that the driver's need: drm, video, wmi, i2c-core. Those that were
// not loaded before are unloaded again with the driver.
#include "base/core/text.hpp"
#include "install/driver_setup/setup_work_internal.hpp"
#include "install/kernel_module/module_order.hpp"

#include <algorithm>

namespace gantry::driver_setup {
namespace {

using kernel_module::LoadedModule;
using Names = std::vector<std::string>;

bool has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Those that a module of the driver uses, or one of these.
Names used_by_driver(const std::vector<LoadedModule>& loaded) {
  Names used;
  const auto uses = [&](const std::string& user) {
    return kernel_module::is_driver_module(user) || has(used, user);
  };
  for (bool more = true; more;) {
    more = false;
    for (const auto& module : loaded) {
      const bool known = kernel_module::is_driver_module(module.name) || has(used, module.name);
      if (known || std::none_of(module.users.begin(), module.users.end(), uses)) continue;
      used.push_back(module.name);
      more = true;
    }
  }
  return used;
}

}  // namespace

// "/lib/modules/6.1.0/kernel/drivers/acpi/video.ko.xz" -> "video"
std::string kernels_module_name(std::string_view path) {
  const auto file = base_name(path);
  return kernel_module::module_name(file.substr(0, file.find(".ko")));
}

Status note_kernels_own(SetupWork& work, const Names& names) {
  auto& noted = work.journal.target.kernel_modules;
  const auto before = noted.size();
  for (const auto& name : names) {
    if (!has(noted, name)) noted.push_back(name);
  }
  return noted.size() == before ? Status() : save_journal(work);
}

Status note_loaded_since(SetupWork& work, const std::vector<LoadedModule>& before) {
  const auto loaded = kernel_module::read_loaded_modules(work.host);
  if (!loaded.ok()) return {};
  auto names = used_by_driver(*loaded);
  std::erase_if(names, [&](const std::string& name) {
    return kernel_module::find_loaded(before, name) != nullptr;
  });
  return note_kernels_own(work, names);
}

// Something else may use one by now. The machine works with it, so nothing fails here.
void unload_kernels_own(SetupWork& work, Names names) {
  for (std::size_t round = names.size(); round > 0 && !names.empty(); --round) {
    const auto loaded = kernel_module::read_loaded_modules(work.host);
    if (!loaded.ok()) return;
    std::erase_if(names, [&](const std::string& name) {
      const auto* module = kernel_module::find_loaded(*loaded, name);
      if (module == nullptr) return true;
      return module->references == 0 && work.effects.unload_module(name).ok();
    });
  }
}

}  // namespace gantry::driver_setup
