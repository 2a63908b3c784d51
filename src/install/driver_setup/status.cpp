// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/status.hpp"

#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "gpu/procfs/version.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/driver_setup/place_files.hpp"
#include "install/driver_setup/record_json_internal.hpp"
#include "install/kernel_module/loaded_modules.hpp"
#include "install/kernel_module/module_file.hpp"
#include "install/kernel_module/module_order.hpp"
#include "install/kernel_module/running_kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::driver_setup {
namespace {

constexpr std::size_t kMostKernels = 64;

bool built_for(const sys::Host& host, const InstallRecord& record, const std::string& kernel) {
  const auto directory = Layout(record.directory).modules(record.name, kernel);
  const auto damage = find_damage(host, directory, directory + "/files.json");
  return damage.ok() && damage->empty();
}

// A directory below /lib/modules may be all that is left of a kernel that was removed.
bool is_kernel(const sys::Host& host, const std::string& release) {
  return host.exists(fmt::format("/lib/modules/{}/modules.dep", release)) ||
         host.exists(fmt::format("/lib/modules/{}/kernel", release));
}

std::vector<KernelStatus> read_kernels(const sys::Host& host,
                                       const std::optional<InstallRecord>& record,
                                       const std::string& running) {
  std::vector<KernelStatus> kernels;
  auto names = host.list("/lib/modules").value_or({});
  if (!running.empty() && std::find(names.begin(), names.end(), running) == names.end())
    names.push_back(running);
  for (const auto& name : names) {
    if (kernels.size() == kMostKernels) break;
    if (name != running && !is_kernel(host, name)) continue;
    KernelStatus kernel{.release = name, .running = name == running};
    if (record && record->has_files()) {
      kernel.has_modules = built_for(host, *record, name);
      const auto headers = kernel_module::find_kernel_headers(host, name);
      if (!kernel.has_modules && !headers.ok()) kernel.missing = headers.error().text();
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

void add_notes(DriverStatus& status) {
  if (status.unfinished) {
    const auto& journal = *status.unfinished;
    status.notes.push_back(fmt::format(
        "the {} of {} did not end; run the same command again, or take it off: sudo gantry driver "
        "remove",
        journal.command == "remove" ? "removal" : "installation", describe(journal.target)));
  }
  if (!status.installed) return;
  const auto& record = *status.installed;
  if (status.loaded_version.empty()) {
    status.notes.emplace_back("the driver is not loaded: sudo gantry driver load");
  } else if (status.loaded_version != record.version) {
    status.notes.push_back(fmt::format("the kernel has the driver {}, installed is {}",
                                       status.loaded_version, describe(record)));
  }
  if (!record.has_files()) return;
  for (const auto& kernel : status.kernels) {
    if (kernel.has_modules) continue;
    status.notes.push_back(
        kernel.missing.empty()
            ? fmt::format("there are no modules for {0}: sudo gantry driver build --kernel {0}",
                          kernel.release)
            : fmt::format("there are no modules for {}, and they cannot be built: {}",
                          kernel.release, kernel.missing));
  }
}

}  // namespace

Result<DriverStatus> read_status(const sys::Host& host) {
  DriverStatus status;
  GANTRY_TRY(status.installed, read_record(host));
  GANTRY_TRY(status.unfinished, read_install_journal(host));
  const auto version = procfs::read_version(host);
  if (version.ok()) status.loaded_version = version->version;
  GANTRY_TRY(const auto loaded, kernel_module::read_loaded_modules(host));
  for (const auto& module : loaded) {
    if (kernel_module::is_driver_module(module.name)) status.modules.push_back(module.name);
  }
  const auto running = kernel_module::read_running_kernel(host);
  status.kernels = read_kernels(host, status.installed, running.ok() ? running->release : "");
  if (status.installed && status.installed->has_files()) {
    for (auto& name : host.list(Layout(status.installed->directory).versions()).value_or({})) {
      if (is_version_name(name)) status.versions.push_back(std::move(name));
    }
    auto old = status.versions;
    std::erase(old, status.installed->name);
    status.used_versions = versions_in_use(host, old);
  }
  add_notes(status);
  return status;
}

std::string to_text(const DriverStatus& status) {
  std::string text;
  if (status.installed) {
    const auto& record = *status.installed;
    text += fmt::format("installed  {} from {}{}\n", describe(record), to_string(record.source),
                        record.has_files() ? fmt::format(" in {}", record.directory) : "");
  } else {
    text += "installed  nothing by Gantry\n";
  }
  text += status.loaded_version.empty() ? "loaded     no driver\n"
                                        : fmt::format("loaded     {} ({})\n", status.loaded_version,
                                                      fmt::join(status.modules, ", "));
  for (const auto& name : status.versions) {
    const auto user = status.used_versions.find(name);
    text += fmt::format("version    {}{}\n", name,
                        user == status.used_versions.end()
                            ? ""
                            : fmt::format(", in use: {}", describe(user->second)));
  }
  if (status.installed)
    for (const auto& package : status.installed->packages)
      text += fmt::format("package    {}\n", package);
  for (const auto& kernel : status.kernels) {
    text += fmt::format("kernel     {}{}{}\n", kernel.release, kernel.running ? " (running)" : "",
                        !status.installed || !status.installed->has_files() ? ""
                        : kernel.has_modules                                ? ": has modules"
                                                                            : ": no modules");
  }
  return text;
}

std::string to_json(const DriverStatus& status) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", 1);
    out.key("installed");
    if (status.installed) {
      write_record(out, *status.installed);
    } else {
      out.value(nullptr);
    }
    out.member("loadedVersion", status.loaded_version);
    out.array("modules", status.modules);
    out.array("versions", status.versions);
    out.array("usedVersions", status.used_versions, [&](const auto& used) {
      out.object([&] {
        out.member("name", used.first);
        out.member("pid", used.second.pid);
        out.member("command", used.second.command);
      });
    });
    out.array("kernels", status.kernels, [&](const KernelStatus& kernel) {
      out.object([&] {
        out.member("release", kernel.release);
        out.member("running", kernel.running);
        out.member("hasModules", kernel.has_modules);
        out.member("missing", kernel.missing);
      });
    });
    out.member("unfinished", status.unfinished ? status.unfinished->command : "");
    out.array("notes", status.notes);
  });
  return std::move(out).text() + "\n";
}

}  // namespace gantry::driver_setup
