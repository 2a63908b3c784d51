// SPDX-License-Identifier: Apache-2.0
// Programs, configuration, X.org modules, firmware and sockets. These are a few names in a few
// directories: checking each is faster than listing /usr/bin.
#include "base/core/text.hpp"
#include "gpu/driver/directories.hpp"
#include "gpu/driver/file_names.hpp"
#include "gpu/driver/files_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver {
namespace {

bool is_nix(const DriverRoot& root) {
  return root.library_directory.starts_with("/nix/store/");
}

// The driver's own directory first, then the machine's.
std::vector<std::string> binary_directories(const DriverView& view, const DriverRoot& root) {
  std::vector<std::string> found;
  if (!root.is_chroot && root.root != "/") found.push_back(join_path(root.root, "bin"));
  for (const auto& directory : root.directories) {
    const auto path = view.inside(directory.path);
    if (base_name(path).starts_with("nvidia-")) found.push_back(join_path(path, "bin"));
  }
  if (is_nix(root)) found.emplace_back(kNixBinaryDirectory);
  found.insert(found.end(), kBinaryDirectories.begin(), kBinaryDirectories.end());
  return found;
}

std::vector<std::string> config_directories(const DriverRoot& root) {
  std::vector<std::string> found;
  if (!root.is_chroot && root.root != "/") {
    for (const std::string_view below : {"share", "etc"})
      found.push_back(join_path(root.root, below));
    found.push_back(root.root);  // GKE keeps vulkan/ directly in its directory
  }
  if (is_nix(root)) {
    for (const std::string_view below : {"share", "etc"})
      found.push_back(join_path(kNixDirectory, below));
  }
  found.insert(found.end(), kConfigDirectories.begin(), kConfigDirectories.end());
  return found;
}

void find_rows(const DriverView& view, std::span<const FileRow> rows, model::DriverFileKind kind,
               const std::vector<std::string>& directories, DriverFiles& out) {
  std::vector<std::string> present;
  for (const auto& directory : directories) {
    if (view.host.exists(directory)) present.push_back(directory);
  }
  for (const auto& row : rows) {
    for (const auto& directory : present) {
      if (add_file(view, join_path(directory, row.name), kind, row.capabilities,
                   fmt::format("in {}", view.outside(directory)), out)) {
        break;
      }
    }
  }
}

std::vector<std::string> xorg_directories(const DriverView& view, const DriverRoot& root) {
  std::vector<std::string> found;
  const auto add_modules = [&](const std::string& modules) {
    if (!view.host.exists(modules)) return;
    for (const auto below : kXorgModuleDirectories) found.push_back(join_path(modules, below));
  };
  for (const auto& directory : root.directories) {
    const auto path = view.inside(directory.path);
    found.push_back(join_path(path, "nvidia/xorg"));
    add_modules(join_path(path, "xorg/modules"));
  }
  for (const auto modules : kXorgModuleRoots) add_modules(std::string(modules));
  return found;
}

// As the kernel looks for it: request_firmware() and the firmware_class parameter.
std::vector<std::string> firmware_directories(const sys::Host& machine) {
  std::vector<std::string> found;
  const auto parameter = machine.read_value("/sys/module/firmware_class/parameters/path");
  if (parameter && parameter->starts_with('/')) found.push_back(*parameter);
  const auto release = machine.read_value("/proc/sys/kernel/osrelease");
  const bool plain = release && !release->empty() && release->find('/') == std::string::npos;
  for (const std::string_view base : {"/lib/firmware/updates", "/lib/firmware"}) {
    if (plain) found.push_back(join_path(base, *release));
    found.emplace_back(base);
  }
  return found;
}

bool add_firmware(const DriverView& view, const std::string& base, const std::string& version,
                  DriverFiles& out) {
  const auto directory = fmt::format("{}/nvidia/{}", base, version);
  const auto names = view.host.list(directory);
  if (!names.ok()) return false;
  bool any = false;
  for (const auto& name : *names) {
    if (!name.starts_with("gsp") || !name.ends_with(".bin")) continue;
    any |= add_file(view, join_path(directory, name), model::DriverFileKind::Firmware,
                    kAllCapabilities,
                    fmt::format("the kernel looks for firmware in {}", view.outside(base)), out);
  }
  return any;
}

}  // namespace

bool add_file(const DriverView& view, std::string_view path, model::DriverFileKind kind,
              CapabilityMask capabilities, std::string_view why, DriverFiles& out) {
  auto real = view.host.resolve(path);
  if (!real.ok()) return false;
  const auto info = view.host.info(*real);
  if (!info.ok() || info->kind == sys::FileKind::Directory) return false;
  auto outside = view.outside(*real);
  const bool known = std::any_of(out.files.begin(), out.files.end(),
                                 [&](const model::DriverFile& f) { return f.path == outside; });
  if (known) return true;
  // Debian's alternatives: programs use the requested name, not the target of the link.
  std::vector<std::string> links;
  if (*real != path) links.push_back(view.outside(path));
  out.files.push_back({.path = std::move(outside),
                       .kind = kind,
                       .capabilities = capabilities_of(capabilities),
                       .soname = {},
                       .links = std::move(links),
                       .size = info->size,
                       .why = std::string(why)});
  return true;
}

void find_binaries(const DriverView& view, const DriverRoot& root, DriverFiles& out) {
  find_rows(view, binary_rows(), model::DriverFileKind::Binary, binary_directories(view, root),
            out);
}

void find_configs(const DriverView& view, const DriverRoot& root, DriverFiles& out) {
  find_rows(view, config_rows(), model::DriverFileKind::Config, config_directories(root), out);
}

void find_xorg_modules(const DriverView& view, const DriverRoot& root, DriverFiles& out) {
  const auto display = mask_of(model::Capability::Display);
  const auto server = fmt::format("libglxserver_nvidia.so.{}", root.library_version);
  const std::vector<FileRow> rows{{"nvidia_drv.so", display}, {server, display}};
  find_rows(view, rows, model::DriverFileKind::XorgModule, xorg_directories(view, root), out);
}

void find_firmware(const sys::Host& machine, const DriverView& view, const DriverRoot& root,
                   DriverFiles& out) {
  // The module loads firmware of its own version, not of the libraries' version.
  const auto& version = root.kernel_version.empty() ? root.library_version : root.kernel_version;
  if (!is_driver_version(version)) return;
  const DriverView of_machine{machine, ""};
  for (const auto& base : firmware_directories(machine)) {
    if (add_firmware(of_machine, base, version, out)) return;
  }
  if (root.is_chroot) {
    add_firmware(view, "/lib/firmware", version, out);
  } else if (root.root != "/") {
    add_firmware(view, join_path(root.root, "firmware"), version, out);
  }
}

void find_sockets(const sys::Host& machine, const DriverView& view, DriverFiles& out) {
  const DriverView of_machine{machine, ""};
  for (const auto& row : socket_rows()) {
    for (const auto* place : {&view, &of_machine}) {
      const bool added =
          add_file(*place, join_path("/run", row.name), model::DriverFileKind::IpcSocket,
                   row.capabilities, fmt::format("{} is running", parent_directory(row.name)),
                   out) ||
          add_file(*place, join_path("/var/run", row.name), model::DriverFileKind::IpcSocket,
                   row.capabilities, fmt::format("{} is running", parent_directory(row.name)), out);
      if (added) break;
    }
  }
  const auto mps = machine.info("/tmp/nvidia-mps");
  if (mps.ok() && mps->kind == sys::FileKind::Directory) out.mps_pipe_directory = "/tmp/nvidia-mps";
}

void find_storage_files(const sys::Host& machine, DriverFiles& out) {
  if (!machine.exists("/proc/driver/nvidia-fs")) return;
  for (const auto* path : {"/etc/cufile.json", "/run/udev"}) {
    if (!machine.exists(path)) continue;
    out.files.push_back({.path = path,
                         .kind = model::DriverFileKind::Config,
                         .capabilities = {},
                         .soname = {},
                         .links = {},
                         .why = "GPUDirect Storage reads it"});
  }
}

}  // namespace gantry::driver
