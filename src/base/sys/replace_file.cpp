// SPDX-License-Identifier: Apache-2.0
#include "base/sys/replace_file.hpp"

#include "base/sys/descriptor.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace gantry::sys {
namespace {

Status fill(int fd, std::string_view content, unsigned mode, Durability durability,
            const std::string& name) {
  GANTRY_CHECK(write_all(fd, content, name));
  if (::fchmod(fd, mode) != 0) return Error::sys(errno, fmt::format("chmod {}", name));
  if (durability == Durability::Synced && ::fsync(fd) != 0) {
    return Error::sys(errno, fmt::format("fsync {}", name));
  }
  return {};
}

// Always 0755: the umask of an engine may be 0, and we trust the files below. Returns an errno.
int make_directories(const std::filesystem::path& path) {
  std::error_code ignored;
  if (path.empty() || std::filesystem::exists(path, ignored)) return 0;
  if (const int err = make_directories(path.parent_path()); err != 0) return err;
  if (::mkdir(path.c_str(), 0755) != 0) return errno == EEXIST ? 0 : errno;
  ::chmod(path.c_str(), 0755);
  return 0;
}

// The rename is durable only when the directory is on disk too.
Status sync_directory(const std::filesystem::path& directory) {
  const UniqueFd fd(
      ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid() && ::fsync(fd.get()) == 0) return {};
  return Error::sys(errno, fmt::format("fsync {}", directory.string()));
}

Status replace(const std::filesystem::path& target,
               const std::filesystem::path& temporary_directory, std::string_view content,
               unsigned mode, Durability durability) {
  if (const int err = make_directories(target.parent_path()); err != 0)
    return Error::sys(err, fmt::format("write {}", target.string()));

  // The name is hidden, so that programs that read the whole directory (features.d) skip it. Errors
  // name the file itself: the user does not know the temporary name.
  std::string temporary =
      (temporary_directory / ("." + target.filename().string() + ".XXXXXX")).string();
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return Error::sys(errno, fmt::format("write {}", target.string()));
  auto status = fill(fd.get(), content, mode, durability, target.string());
  if (status.ok() && ::rename(temporary.c_str(), target.c_str()) != 0) {
    status = Error::sys(errno, fmt::format("write {}", target.string()));
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return durability == Durability::Synced ? sync_directory(target.parent_path()) : Status();
}

}  // namespace

Status replace_file(const std::string& path, std::string_view content, unsigned mode,
                    Durability durability) {
  const std::filesystem::path target(path);
  return replace(target, target.parent_path(), content, mode, durability);
}

Status replace_drop_in(const std::string& drop_ins, const std::string& path,
                       std::string_view content, unsigned mode) {
  const std::filesystem::path directory(drop_ins);
  auto status = replace(path, directory.parent_path(), content, mode, Durability::Synced);
  const int err = status.ok() ? 0 : status.error().sys_errno();
  return err == EXDEV || err == EROFS ? replace_file(path, content, mode) : status;
}

}  // namespace gantry::sys
