// SPDX-License-Identifier: Apache-2.0
// The driver's current files: opens and checks them and computes a digest.
#include "base/core/hash.hpp"
#include "base/sys/trusted.hpp"
#include "container/driver_dir/layout_internal.hpp"
#include "container/plan/driver_paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace gantry::driver_dir {
namespace {

using model::DriverFileKind;

// Increase it when the layout of the directory changes, so that old directories are rebuilt.
constexpr int kLayout = 3;

Status check_owner(const sys::Host& host, const SourceFile& source, uid_t owner) {
  const auto& status = source.status;
  const auto path = host.outside(source.file->path);
  if (!S_ISREG(status.st_mode)) {
    return Error(Errc::Denied, fmt::format("{} is not a regular file", path));
  }
  return sys::check_trusted(status.st_uid, status.st_mode, owner, path);
}

void add_to(Hash& hash, const SourceFile& source) {
  const auto& file = *source.file;
  hash.add(file.path);
  hash.add(file.soname);
  for (const auto& link : file.links) hash.add(link);
  for (const auto capability : file.capabilities) hash.add(static_cast<int>(capability));
  hash.add(static_cast<std::uint64_t>(source.status.st_size));
  hash.add(static_cast<std::uint64_t>(source.status.st_ino));
  hash.add(static_cast<std::int64_t>(source.status.st_mtim.tv_sec));
  hash.add(static_cast<std::int64_t>(source.status.st_mtim.tv_nsec));
}

}  // namespace

Result<SourceFiles> open_sources(const sys::Host& host, const model::Inventory& machine) {
  // A simulated tree may belong to the user who created it; "/" must belong to root.
  GANTRY_TRY(const auto root, host.info("/"));
  SourceFiles sources;
  Hash hash;
  hash.add(kLayout);
  bool has_libraries = false;
  for (const auto& file : machine.files) {
    const bool is_config = file.kind == DriverFileKind::Config;
    if (file.kind != DriverFileKind::Library && file.kind != DriverFileKind::Binary && !is_config)
      continue;
    GANTRY_TRY(auto fd, host.open(file.path, O_PATH));
    SourceFile source{.file = &file, .fd = std::move(fd)};
    if (::fstatat(source.fd.get(), "", &source.status, AT_EMPTY_PATH) != 0)
      return Error::sys(errno, fmt::format("stat {}", host.outside(file.path)));
    // Skips linker scripts, which are text, and directories.
    if (!is_config) GANTRY_CHECK(check_owner(host, source, root.uid));
    if (is_config && !S_ISREG(source.status.st_mode)) continue;
    add_to(hash, source);
    has_libraries = has_libraries || file.kind == DriverFileKind::Library;
    sources.files.push_back(std::move(source));
  }
  const auto& driver = machine.driver;
  const auto& version = driver.library_version.empty() ? driver.version : driver.library_version;
  if (!has_libraries || version.empty()) {
    // The driver's note names the directories that were searched.
    const auto why =
        std::find_if(machine.notes.begin(), machine.notes.end(),
                     [](const std::string& note) { return note.starts_with("no libcuda"); });
    return Error(
        Errc::NotFound,
        fmt::format(
            "{} has no libraries of the NVIDIA driver{}; install the driver's libraries, or "
            "run `gantry doctor`",
            host.root(), why == machine.notes.end() ? "" : " (" + *why + ")"));
  }
  sources.name = fmt::format("{}-{}", version, hash.text());
  if (version_in_name(sources.name).empty())
    return Error(Errc::Invalid, fmt::format("\"{}\" is not a driver version", version));
  return sources;
}

}  // namespace gantry::driver_dir
