// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver/files.hpp"

#include "base/core/text.hpp"
#include "gpu/driver/file_names.hpp"
#include "gpu/driver/files_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver {
namespace {

DriverFiles find_in(const sys::Host& machine, const DriverView& view, const DriverRoot& root) {
  DriverFiles out;
  if (root.found()) {
    find_libraries(view, root, out);
    find_binaries(view, root, out);
    find_configs(view, root, out);
    find_xorg_modules(view, root, out);
  }
  find_firmware(machine, view, root, out);
  find_sockets(machine, view, out);
  find_storage_files(machine, out);
  return out;
}

bool has_name(const DriverFiles& found, model::DriverFileKind kind, std::string_view name) {
  const auto tail = fmt::format("/{}", name);
  const auto ends_so = [&](const std::string& path) { return path.ends_with(tail); };
  return std::any_of(found.files.begin(), found.files.end(), [&](const model::DriverFile& file) {
    return file.kind == kind &&
           (ends_so(file.path) || std::any_of(file.links.begin(), file.links.end(), ends_so));
  });
}

bool has_library(const DriverFiles& found, const LibraryRow& row) {
  return std::any_of(found.files.begin(), found.files.end(), [&](const model::DriverFile& file) {
    const auto parsed = parse_library_name(base_name(file.path));
    return parsed && parsed->stem == row.stem && !file.is_32bit;
  });
}

}  // namespace

const model::DriverFile* DriverFiles::library(std::string_view name) const {
  for (const auto& file : files) {
    if (file.kind != model::DriverFileKind::Library || file.is_32bit) continue;
    const bool linked = std::find(file.links.begin(), file.links.end(), name) != file.links.end();
    if (file.soname == name || linked || base_name(file.path) == name) return &file;
  }
  return nullptr;
}

DriverFiles find_files(const sys::Host& host, const DriverRoot& root) {
  if (!root.is_chroot) return find_in(host, {host, ""}, root);
  const auto inner = sys::Host::at(host.outside(root.root));
  if (inner.ok()) return find_in(host, {*inner, root.root}, root);
  DriverFiles out;
  out.notes.push_back(inner.error().text());
  return out;
}

std::vector<MissingFile> missing_files(const DriverFiles& found, const DriverRoot& root) {
  std::vector<MissingFile> absent;
  const auto add = [&](std::string name, model::DriverFileKind kind, CapabilityMask capabilities) {
    absent.push_back({std::move(name), kind, capabilities_of(capabilities)});
  };
  for (const auto& row : library_rows()) {
    if (has_library(found, row)) continue;
    const bool own = row.rule == NameRule::OwnVersion;
    add(fmt::format("{}.so.{}", row.stem, own ? "*" : root.library_version), row.kind,
        row.capabilities);
  }
  using model::DriverFileKind;
  for (const auto& [rows, kind] : {std::pair{binary_rows(), DriverFileKind::Binary},
                                   {config_rows(), DriverFileKind::Config},
                                   {socket_rows(), DriverFileKind::IpcSocket}}) {
    for (const auto& row : rows) {
      if (!has_name(found, kind, row.name)) add(std::string(row.name), kind, row.capabilities);
    }
  }
  return absent;
}

void copy_to_inventory(const DriverRoot& root, model::Driver& driver) {
  driver.root = root.root;
  driver.library_directory = root.library_directory;
  driver.library_version = root.library_version;
}

}  // namespace gantry::driver
