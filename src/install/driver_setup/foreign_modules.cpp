// SPDX-License-Identifier: Apache-2.0
// Modules of a driver that Gantry did not install: where they came from, and loading them again.
#include "base/core/text.hpp"
#include "gpu/procfs/version.hpp"
#include "install/driver_setup/module_options.hpp"
#include "install/driver_setup/setup_work_internal.hpp"
#include "install/kernel_module/module_file.hpp"
#include "install/kernel_module/module_order.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver_setup {
namespace {

std::string file_name_of(std::string_view module) {
  std::string name(module);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool is_of(const sys::Host& host, const std::string& path, const std::string& release,
           const std::string& version) {
  const auto file = kernel_module::read_module(host, path);
  if (!file.ok()) return file.error().code() == Errc::Unsupported;  // compressed: modprobe reads it
  return kernel_module::kernel_release(*file) == release &&
         (file->version.empty() || file->version == version);
}

// The kernel does not tell which file it got. Packages and NVIDIA's installer put the modules below
// /lib/modules, Google's into the directory of the driver.
std::string find_source(const SetupWork& work, const std::string& release,
                        const std::string& module, const std::string& version) {
  const auto name = file_name_of(module);
  for (const auto& path :
       {kernel_module::find_module_file(work.host, release, name),
        kernel_module::find_module_file(work.host, release, module),
        fmt::format("{}/{}.ko", work.layout.shown("drivers"), name),
        fmt::format("{}/{}/{}.ko", work.layout.shown("drivers"), release, name)}) {
    if (!path.empty() && work.host.exists(path) && is_of(work.host, path, release, version))
      return path;
  }
  return "";
}

// What was moved aside comes back only at the end.
std::string where_it_is(const SetupWork& work, const std::string& path) {
  for (const auto& moved : work.target().moved_aside) {
    if (path.starts_with(moved + "/") && !work.host.exists(path))
      return aside_of(moved) + path.substr(moved.size());
  }
  return path;
}

Status load_again(SetupWork& work, const UnloadedModule& module, const std::string& release) {
  const auto path = where_it_is(work, module.path);
  if (path.ends_with(".ko")) {
    GANTRY_CHECK(check_trusted_place(work.host, std::string(parent_directory(path))));
    return load_with_dependencies(work, path, module_options(work.host, module.name), release);
  }
  const ProgramCall modprobe{.words = {{.text = "modprobe"}, {.text = module.name}}};
  GANTRY_CHECK(work.effects.run(modprobe));
  return {};
}

}  // namespace

void note_foreign_modules(SetupWork& work, const std::string& release) {
  auto& unloaded = work.journal.unloaded_modules;
  const auto version = procfs::read_version(work.host);
  const auto loaded = kernel_module::read_loaded_modules(work.host);
  if (!unloaded.empty() || work.before() != nullptr || !version.ok() || !loaded.ok()) return;
  for (const auto name : kernel_module::driver_modules()) {
    if (kernel_module::find_loaded(*loaded, name) == nullptr) continue;
    std::string module(name);
    auto path = find_source(work, release, module, version->version);
    unloaded.push_back({.name = std::move(module), .path = std::move(path)});
  }
}

// The files may be gone by now. Then the sentence at the end says that the
// driver is not loaded.
Status load_foreign_modules(SetupWork& work, const std::string& release) {
  const auto loaded = kernel_module::read_loaded_modules(work.host);
  for (const auto& module : work.journal.unloaded_modules) {
    if (loaded.ok() && kernel_module::find_loaded(*loaded, module.name) != nullptr) continue;
    const auto done = load_again(work, module, release);
    if (!done.ok())
      work.progress(fmt::format("{} is not loaded again: {}", module.name, done.error().cause()));
  }
  return make_nodes(work);
}

}  // namespace gantry::driver_setup
