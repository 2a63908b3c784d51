// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/module_order.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace gantry::kernel_module {
namespace {

constexpr std::array<std::string_view, 8> kDriverModules{
    "nvidia",         "nvidia_modeset", "nvidia_uvm", "nvidia_drm",
    "nvidia_peermem", "nvidia_fs",      "gdrdrv",     "nvidia_vgpu_vfio"};

std::size_t rank_of(std::string_view name) {
  const auto found = std::find(kDriverModules.begin(), kDriverModules.end(), module_name(name));
  return static_cast<std::size_t>(found - kDriverModules.begin());
}

bool lists(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Loaded modules of the driver, users first as far as the table knows.
std::vector<const LoadedModule*> loaded_driver(const std::vector<LoadedModule>& loaded) {
  std::vector<const LoadedModule*> found;
  for (const auto& module : loaded)
    if (is_driver_module(module.name)) found.push_back(&module);
  std::stable_sort(found.begin(), found.end(), [](const LoadedModule* a, const LoadedModule* b) {
    return rank_of(a->name) > rank_of(b->name);
  });
  return found;
}

void find_blockers(const LoadedModule& module, std::vector<UnloadBlocker>& blockers) {
  using Reason = UnloadBlocker::Reason;
  UnloadBlocker blocker{.module = module.name};
  if (module.references < 0 || module.permanent) {
    blocker.reason = Reason::Permanent;
    blockers.push_back(std::move(blocker));
    return;
  }
  if (module.state != "Live") {
    blocker.reason = Reason::Changing;
    blockers.push_back(std::move(blocker));
    return;
  }
  for (const auto& user : module.users)
    if (!is_driver_module(user)) blocker.users.push_back(user);
  if (!blocker.users.empty()) {
    blocker.reason = Reason::ForeignModule;
    blockers.push_back(blocker);
  }
  const int others = module.references - static_cast<int>(module.users.size());
  if (others > 0)
    blockers.push_back({.reason = Reason::References, .module = module.name, .references = others});
}

}  // namespace

std::span<const std::string_view> driver_modules() {
  return kDriverModules;
}

bool is_driver_module(std::string_view name) {
  return rank_of(name) < kDriverModules.size();
}

std::vector<std::string> load_order(std::span<const std::string> wanted,
                                    const std::vector<LoadedModule>& loaded) {
  std::vector<std::string> order;
  for (const auto& name : wanted)
    if (find_loaded(loaded, name) == nullptr && !lists(order, name)) order.push_back(name);
  std::stable_sort(order.begin(), order.end(), [](const std::string& a, const std::string& b) {
    return rank_of(a) < rank_of(b);
  });
  return order;
}

std::string describe(const UnloadBlocker& blocker) {
  switch (blocker.reason) {
    case UnloadBlocker::Reason::ForeignModule:
      return fmt::format("module {} is used by the module{} {}", blocker.module,
                         blocker.users.size() == 1 ? "" : "s", fmt::join(blocker.users, ", "));
    case UnloadBlocker::Reason::Permanent:
      return fmt::format("module {} cannot be unloaded: it or the kernel was built so",
                         blocker.module);
    case UnloadBlocker::Reason::Changing:
      return fmt::format("module {} is being loaded or unloaded", blocker.module);
    case UnloadBlocker::Reason::References: break;
  }
  return blocker.references == 1
             ? fmt::format("module {} is held by an open device file or by the console",
                           blocker.module)
             : fmt::format("module {} is held {} times by open device files or by the console",
                           blocker.module, blocker.references);
}

UnloadOrder unload_order(const std::vector<LoadedModule>& loaded) {
  UnloadOrder order;
  auto left = loaded_driver(loaded);
  for (const auto* module : left) find_blockers(*module, order.blockers);
  // Each time the first module whose users of the driver are all in the order.
  while (!left.empty()) {
    const auto free = std::find_if(left.begin(), left.end(), [&](const LoadedModule* module) {
      return std::all_of(module->users.begin(), module->users.end(), [&](const std::string& user) {
        return !is_driver_module(user) || find_loaded(loaded, user) == nullptr ||
               lists(order.modules, user);
      });
    });
    const auto next = free == left.end() ? left.begin() : free;  // a cycle cannot be real
    order.modules.push_back((*next)->name);
    left.erase(next);
  }
  return order;
}

}  // namespace gantry::kernel_module
