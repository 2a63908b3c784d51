// SPDX-License-Identifier: Apache-2.0
#include "base/sys/trusted.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace gantry::sys {
namespace {

Status check_owner(std::uint32_t uid, std::uint32_t owner, std::string_view shown) {
  if (uid == 0 || uid == owner || uid == ::geteuid()) return {};
  return Error(Errc::Denied, fmt::format("{} belongs to user {}, not to root, and that user could "
                                         "change every container",
                                         shown, uid))
      .advise(fmt::format("run: chown root {}", shown));
}

Error writable(std::string_view shown, std::uint32_t mode) {
  return Error(Errc::Denied,
               fmt::format("{} can be changed by users other than its owner (mode {:04o})", shown,
                           mode & 07777U))
      .advise(fmt::format("run: chmod go-w {}", shown));
}

// In a directory with the sticky bit, users can create files but cannot rename those of others.
Status check_directory(const FileInfo& found, const FileInfo& root, std::string_view shown) {
  GANTRY_CHECK(check_owner(found.uid, root.uid, shown));
  const bool by_all = (found.mode & S_IWOTH) != 0 && (found.mode & S_ISVTX) == 0;
  // The group of the root directory is trusted like its owner: a tree created under umask 002.
  const bool by_group = (found.mode & (S_IWGRP | S_ISVTX)) == S_IWGRP && found.gid != root.gid;
  if (by_all || by_group) return writable(shown, found.mode);
  return {};
}

}  // namespace

Status check_trusted(std::uint32_t uid, std::uint32_t mode, std::uint32_t owner,
                     std::string_view shown) {
  GANTRY_CHECK(check_owner(uid, owner, shown));
  if ((mode & (S_IWGRP | S_IWOTH)) != 0) return writable(shown, mode);
  return {};
}

Result<std::string> read_trusted(const Host& host, std::string_view path, std::size_t limit) {
  GANTRY_TRY(const UniqueFd fd, host.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  GANTRY_TRY(const auto root, host.info("/"));
  GANTRY_TRY(const auto found, file_info(fd.get(), host.outside(path)));
  GANTRY_CHECK(check_trusted(found.uid, found.mode, root.uid, host.outside(path)));
  for (auto slash = path.find('/', 1); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    const auto directory = path.substr(0, slash);
    GANTRY_TRY(const auto above, host.info(directory));
    GANTRY_CHECK(check_directory(above, root, host.outside(directory)));
  }
  return read_regular(fd.get(), limit, host.outside(path));
}

}  // namespace gantry::sys
