// SPDX-License-Identifier: Apache-2.0
// The driver's files in a container: one directory with libraries, one with programs, and a few
// files at fixed paths.
#include "container/plan/edits_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::plan {
namespace {

using model::Capability;
using model::ContainerEdits;
using model::DriverFile;
using model::DriverFileKind;
using model::Inventory;

constexpr std::string_view kGbmLibrary = "libnvidia-allocator.so.1";

// Without `ro`: clients cannot connect to a socket on a read-only mount.
std::vector<std::string> socket_options() {
  return {"nosuid", "nodev", "noexec", "rbind", "rprivate"};
}

// A driver container's files are mounted as if its root were "/".
std::string without_root(const Inventory& machine, std::string_view path) {
  const auto& root = machine.driver.root;
  if (root.size() > 1 && path.starts_with(root) && path.substr(root.size()).starts_with('/') &&
      root.find("/nvidia/driver") != std::string::npos) {
    path.remove_prefix(root.size());
  }
  return std::string(path);
}

bool wants(const DriverFile& file, DriverFileKind kind, model::CapabilityMask closed) {
  return file.kind == kind && model::is_needed(file, closed);
}

bool any(const Inventory& machine, DriverFileKind kind, model::CapabilityMask closed,
         bool is_32bit) {
  return std::any_of(machine.files.begin(), machine.files.end(), [&](const DriverFile& file) {
    return file.is_32bit == is_32bit && wants(file, kind, closed);
  });
}

void add_mount(std::string host, std::string container, std::string why, ContainerEdits& edits) {
  edits.mounts.push_back({.host_path = std::move(host),
                          .container_path = std::move(container),
                          .why = std::move(why)});
}

// The sets for graphics and display have the same libraries: see library_set_name().
model::CapabilityMask of_set(model::CapabilityMask closed) {
  return has(closed, Capability::Graphics) ? closed | model::mask_of(Capability::Display) : closed;
}

void add_library_names(const Inventory& machine, model::CapabilityMask closed,
                       ContainerEdits& edits) {
  for (const auto& file : machine.files) {
    if (!wants(file, DriverFileKind::Library, of_set(closed))) continue;
    const auto directory =
        file.is_32bit ? kContainerLibraryDirectory32 : kContainerLibraryDirectory;
    for (auto& name : names_in_directory(file)) {
      // The loader is asked for the SONAME or for a link, not for the file with its version.
      const bool is_for_loader = name == file.soname || !file.path.ends_with("/" + name);
      if (!is_for_loader || name.find('/') != std::string::npos || !name.starts_with("lib"))
        continue;
      auto path = fmt::format("{}/{}", directory, name);
      edits.libraries.push_back(
          {.name = std::move(name), .path = std::move(path), .is_32bit = file.is_32bit});
    }
  }
}

void add_libraries(const Inventory& machine, model::CapabilityMask closed,
                   const PlanOptions& options, ContainerEdits& edits) {
  const auto set = library_set_name(closed);
  const auto below = [&](std::string_view what) {
    return engine_path(options, fmt::format("{}/sets/{}/{}", options.prepared, set, what));
  };
  const auto has64 = any(machine, DriverFileKind::Library, of_set(closed), false);
  const auto has32 = any(machine, DriverFileKind::Library, of_set(closed), true);
  if (has64) {
    add_mount(below("lib64"), std::string(kContainerLibraryDirectory),
              fmt::format("the driver's libraries for {}", set), edits);
    if (options.flavour == Flavour::NoHooks) {
      for (auto& directory : loader_directories()) {
        add_mount(below("lib64"), std::move(directory), "the same where the loader looks", edits);
      }
    }
  } else {
    edits.notes.push_back(
        fmt::format("the driver has no 64-bit libraries for {} on this machine; "
                    "run `gantry doctor`",
                    set));
  }
  if (has32) {
    add_mount(below("lib"), std::string(kContainerLibraryDirectory32),
              fmt::format("the driver's 32-bit libraries for {}", set), edits);
  } else if (has(closed, Capability::Compat32)) {
    edits.notes.push_back(
        "compat32 was requested, but the driver's 32-bit libraries are not installed here");
  }
}

// libgbm opens its back end only by path. It is libnvidia-allocator under another name.
void add_gbm(const Inventory& machine, model::CapabilityMask closed, const PlanOptions& options,
             ContainerEdits& edits) {
  if (!has(closed, Capability::Graphics)) return;
  for (const auto& file : machine.files) {
    if (!wants(file, DriverFileKind::Library, closed) || file.is_32bit ||
        file.soname != kGbmLibrary) {
      continue;
    }
    const auto library = engine_path(options, fmt::format("{}/sets/{}/lib64/{}", options.prepared,
                                                          library_set_name(closed), kGbmLibrary));
    for (auto& path : gbm_backends()) add_mount(library, std::move(path), "GBM's back end", edits);
  }
}

void add_programs(const Inventory& machine, model::CapabilityMask closed,
                  const PlanOptions& options, ContainerEdits& edits) {
  if (!any(machine, DriverFileKind::Binary, closed, false)) return;
  const auto directory = engine_path(options, fmt::format("{}/bin", options.prepared));
  add_mount(directory, std::string(kContainerProgramDirectory), "the driver's programs", edits);
  for (const auto& file : machine.files) {
    if (!wants(file, DriverFileKind::Binary, closed)) continue;
    const auto name = program_name(file);
    add_mount(fmt::format("{}/{}", directory, name), fmt::format("{}/{}", kContainerPath, name),
              fmt::format("{} in a directory of every PATH", name), edits);
  }
}

void add_single_files(const Inventory& machine, model::CapabilityMask closed,
                      const PlanOptions& options, ContainerEdits& edits) {
  for (const auto& file : machine.files) {
    if (!model::is_needed(file, closed)) continue;
    const auto host = engine_path(options, file.path);
    switch (file.kind) {
      case DriverFileKind::Config:
        add_mount(host, config_path_in_container(file), "configuration", edits);
        break;
      case DriverFileKind::XorgModule:
        add_mount(host, without_root(machine, file.path), "X.org module", edits);
        break;
      case DriverFileKind::Firmware:
        if (options.firmware) {
          const auto& place = file.links.empty() ? file.path : file.links.front();
          add_mount(host, without_root(machine, place.starts_with('/') ? place : file.path),
                    "firmware, as requested", edits);
        }
        break;
      case DriverFileKind::IpcSocket:
        if (!options.sockets) break;
        edits.mounts.push_back({.host_path = host,
                                .container_path = without_root(machine, file.path),
                                .options = socket_options(),
                                .why = "socket of a driver's daemon"});
        break;
      case DriverFileKind::Library:
      case DriverFileKind::Binary: break;
    }
  }
}

model::HookEdit hook_call(const PlanOptions& options, std::string name, std::string why) {
  return {.stage = "createContainer",
          .path = options.hook_path,
          .args = {options.hook_path.substr(options.hook_path.rfind('/') + 1), std::move(name)},
          .env = {"NVIDIA_CTK_DEBUG=false"},
          .why = std::move(why)};
}

void add_root(const PlanOptions& options, model::HookEdit& hook) {
  if (!options.engine_root.empty())
    hook.args.insert(hook.args.end(), {"--root", options.engine_root});
}

void add_hook(const PlanOptions& options, ContainerEdits& edits) {
  auto hook =
      hook_call(options, "update-ldcache", "merges the libraries into the image's ld.so.cache");
  for (const auto& mount : edits.mounts) {
    if (mount.container_path == kContainerLibraryDirectory ||
        mount.container_path == kContainerLibraryDirectory32) {
      hook.args.insert(hook.args.end(), {"--folder", mount.container_path});
    }
  }
  if (hook.args.size() == 2) return;
  // The image's newer libcuda, if it works with the driver that is running then: stored specs do
  // not contain a version.
  hook.args.insert(hook.args.end(), {"--host-driver-version", "running"});
  add_root(options, hook);
  edits.hooks.push_back(std::move(hook));
  if (options.node_hook) edits.hooks.push_back(node_creation_hook(options));
}

// So that an ldconfig inside the container keeps the libraries.
void add_loader_config(ContainerEdits& edits) {
  std::string content;
  for (const auto& mount : edits.mounts) {
    if (mount.container_path == kContainerLibraryDirectory ||
        mount.container_path == kContainerLibraryDirectory32) {
      content += mount.container_path + "\n";
    }
  }
  if (content.empty()) return;
  edits.files.push_back({.path = std::string(kLoaderConfPath),
                         .content = std::move(content),
                         .why = "an ldconfig in the container keeps the driver's libraries"});
}

}  // namespace

// Not a mount over the file: runc allows mounts below /proc only to hooks.
model::HookEdit node_creation_hook(const PlanOptions& options) {
  auto hook = hook_call(options, "disable-device-node-modification",
                        "keeps programs in the container from creating device nodes");
  add_root(options, hook);
  return hook;
}

void add_driver_files(const Inventory& machine, model::CapabilityMask closed,
                      const PlanOptions& options, ContainerEdits& edits) {
  if (library_set_name(closed).empty()) return;
  add_libraries(machine, closed, options, edits);
  if (options.flavour != Flavour::NoHooks) add_library_names(machine, closed, edits);
  if (options.flavour == Flavour::OneHook) add_hook(options, edits);
  if (options.flavour == Flavour::Shim) add_loader_config(edits);
  add_programs(machine, closed, options, edits);
  add_gbm(machine, closed, options, edits);
  add_single_files(machine, closed, options, edits);
}

}  // namespace gantry::plan
