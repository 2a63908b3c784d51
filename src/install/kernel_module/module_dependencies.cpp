// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/module_dependencies.hpp"

#include "base/core/text.hpp"
#include "install/kernel_module/module_order.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::kernel_module {
namespace {

constexpr std::size_t kMaxIndexBytes = std::size_t{16} << 20U;

// "kernel/drivers/gpu/drm/drm.ko.xz" -> "drm"
std::string name_in_path(std::string_view path) {
  const auto file = base_name(path);
  return module_name(file.substr(0, file.find(".ko")));
}

std::string whole_path(std::string_view path, std::string_view release) {
  if (path.starts_with('/')) return std::string(path);
  return fmt::format("/lib/modules/{}/{}", release, path);
}

}  // namespace

ModuleIndex parse_module_index(std::string_view modules_dep, std::string_view modules_builtin) {
  ModuleIndex index;
  for (const auto line : lines(modules_dep)) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) continue;
    ModuleIndex::Entry entry{.path = std::string(line.substr(0, colon))};
    for (const auto need : split(trim(line.substr(colon + 1)), ' '))
      if (!need.empty()) entry.needs.emplace_back(need);
    index.modules.try_emplace(name_in_path(entry.path), std::move(entry));
  }
  for (const auto line : lines(modules_builtin))
    if (!trim(line).empty()) index.builtin.insert(name_in_path(trim(line)));
  return index;
}

Result<ModuleIndex> read_module_index(const sys::Host& host, std::string_view release) {
  if (release.empty() || contains(release, "/"))
    return Error(Errc::Invalid, fmt::format("\"{}\" is not the release of a kernel", release));
  const auto directory = fmt::format("/lib/modules/{}", release);
  GANTRY_TRY(const auto dependencies,
             host.read(directory + "/modules.dep", kMaxIndexBytes)
                 .in(fmt::format("looking up the modules of kernel {}", release)));
  const auto builtin = host.read(directory + "/modules.builtin", kMaxIndexBytes);
  return parse_module_index(dependencies, builtin.ok() ? *builtin : "");
}

Result<std::vector<std::string>> files_to_load_first(const ModuleFile& file,
                                                     const ModuleIndex& index,
                                                     const std::vector<LoadedModule>& loaded,
                                                     std::string_view release) {
  std::vector<std::string> paths;
  const auto add = [&](std::string_view path) {
    if (find_loaded(loaded, name_in_path(path)) != nullptr) return;
    auto whole = whole_path(path, release);
    if (std::find(paths.begin(), paths.end(), whole) == paths.end())
      paths.push_back(std::move(whole));
  };
  for (const auto& needed : file.depends) {
    const auto name = module_name(needed);
    if (is_driver_module(name) || index.builtin.contains(name) ||
        find_loaded(loaded, name) != nullptr)
      continue;
    const auto entry = index.modules.find(name);
    if (entry == index.modules.end())
      return Error(Errc::NotFound,
                   fmt::format("module {} needs the module {}, which kernel {} does not have",
                               file.name, name, release))
          .advise(
              "install the kernel's package of further modules, such as "
              "linux-modules-extra or kernel-modules-extra");
    for (auto need = entry->second.needs.rbegin(); need != entry->second.needs.rend(); ++need)
      add(*need);
    add(entry->second.path);
  }
  return paths;
}

}  // namespace gantry::kernel_module
