// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/host_files.hpp"

#include "base/core/text.hpp"
#include "base/sys/kernel.hpp"
#include "base/sys/remove_tree.hpp"
#include "install/driver_setup/layout.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

namespace gantry::driver_setup {
namespace {

constexpr std::size_t kCopyPiece = std::size_t{16} << 20;

Error failed(std::string_view call, const std::string& path) {
  const int err = errno;
  return Error::sys(err, fmt::format("{} {}", call, path));
}

// Bytes are shared where the file system can do it.
Status copy_bytes(int from, int to, const std::string& shown) {
  for (;;) {
    const auto copied = ::copy_file_range(from, nullptr, to, nullptr, kCopyPiece, 0);
    if (copied == 0) return {};
    if (copied < 0 && errno == EINTR) continue;
    if (copied > 0) continue;
    if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
      return failed("write", shown);
    break;
  }
  std::string buffer(std::size_t{1} << 20, '\0');
  for (;;) {
    const auto got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read for", shown);
    if (got == 0) return {};
    GANTRY_CHECK(
        sys::write_all(to, std::string_view(buffer.data(), static_cast<std::size_t>(got)), shown));
  }
}

Status sync_directory(int directory, const std::string& shown) {
  return ::fsync(directory) == 0 ? Status() : Status(failed("fsync the directory of", shown));
}

// The archive may say other owners than root. An ordinary user's own tree is theirs already.
Status set_owner_and_mode(int file, unsigned mode, const std::string& shown) {
  if (::geteuid() == 0 && ::fchown(file, 0, 0) != 0) return failed("chown", shown);
  if (::fchmod(file, mode) != 0) return failed("chmod", shown);
  return {};
}

Result<sys::UniqueFd> open_regular(int directory, const std::string& name,
                                   const std::string& shown) {
  sys::UniqueFd file(
      ::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) return failed("open", shown);
  GANTRY_TRY(const auto info, sys::file_info(file.get(), shown));
  if (info.kind != sys::FileKind::Regular)
    return Error(Errc::Invalid, fmt::format("{} is not a file", shown));
  return file;
}

Result<sys::UniqueFd> create_new(int directory, const std::string& name, const std::string& shown) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  sys::UniqueFd file(::openat(directory, name.c_str(), kFlags, 0600));
  if (!file.valid()) return failed("write", shown);
  return file;
}

Status write_new(int directory, const std::string& name, std::string_view content, unsigned mode,
                 const std::string& shown) {
  GANTRY_TRY(const auto file, create_new(directory, name, shown));
  GANTRY_CHECK(sys::write_all(file.get(), content, shown));
  if (::fchmod(file.get(), mode) != 0) return failed("chmod", shown);
  return ::fsync(file.get()) == 0 ? Status() : Status(failed("fsync", shown));
}

bool is_missing(int directory, const std::string& name) {
  struct stat info {};
  return ::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

}  // namespace

Result<HostFiles::OpenPlace> HostFiles::open_place(const std::string& path) const {
  GANTRY_TRY(auto directory, host_.open(parent_directory(path), O_RDONLY | O_DIRECTORY));
  return OpenPlace{.directory = std::move(directory),
                   .name = std::string(base_name(path)),
                   .shown = host_.outside(path)};
}

Status HostFiles::save(const std::string& path, std::string_view content, unsigned mode) {
  GANTRY_CHECK(HostFiles::make_directory(std::string(parent_directory(path))));
  GANTRY_TRY(const auto place, open_place(path));
  const int directory = place.directory.get();
  const auto temporary = sys::temporary_of(place.name);
  ::unlinkat(directory, temporary.c_str(), 0);
  auto written = write_new(directory, temporary, content, mode, place.shown);
  if (written.ok() && ::renameat(directory, temporary.c_str(), directory, place.name.c_str()) != 0)
    written = failed("write", place.shown);
  if (written.ok()) return sync_directory(directory, place.shown);
  ::unlinkat(directory, temporary.c_str(), 0);
  return written;
}

// What is in the staging directory is ours and goes away, so a second name is enough.
Status HostFiles::copy(const std::string& from, const std::string& to, unsigned mode) {
  GANTRY_TRY(const auto source, open_place(from));
  GANTRY_TRY(const auto target, open_place(to));
  const bool ours = from.starts_with(fmt::format("{}/", kStaging));
  ::unlinkat(target.directory.get(), target.name.c_str(), 0);
  const bool linked = ours && ::linkat(source.directory.get(), source.name.c_str(),
                                       target.directory.get(), target.name.c_str(), 0) == 0;
  if (linked) {
    GANTRY_TRY(const auto file, open_regular(target.directory.get(), target.name, target.shown));
    return set_owner_and_mode(file.get(), mode, target.shown);
  }
  GANTRY_TRY(const auto in, open_regular(source.directory.get(), source.name, source.shown));
  GANTRY_TRY(const auto out, create_new(target.directory.get(), target.name, target.shown));
  GANTRY_CHECK(copy_bytes(in.get(), out.get(), target.shown));
  return set_owner_and_mode(out.get(), mode, target.shown);
}

Status HostFiles::make_directory(const std::string& path) {
  return sys::real_kernel()->make_directory(host_, path);
}

Status HostFiles::make_link(const std::string& path, const std::string& target) {
  GANTRY_CHECK(sys::real_kernel()->make_symlink(host_, path, target));
  GANTRY_TRY(const auto place, open_place(path));
  return sync_directory(place.directory.get(), place.shown);
}

Status HostFiles::rename(const std::string& from, const std::string& to) {
  GANTRY_TRY(const auto source, open_place(from));
  GANTRY_TRY(const auto target, open_place(to));
  if (::renameat(source.directory.get(), source.name.c_str(), target.directory.get(),
                 target.name.c_str()) != 0)
    return failed("rename to", target.shown);
  return sync_directory(target.directory.get(), target.shown);
}

// Also what a save or a link that was killed left beside it.
Status HostFiles::remove(const std::string& path) {
  const auto place = open_place(path);
  if (!place.ok()) return place.error().code() == Errc::NotFound ? Status() : Status(place.error());
  const int directory = place->directory.get();
  ::unlinkat(directory, sys::temporary_of(place->name).c_str(), 0);
  if (::unlinkat(directory, place->name.c_str(), 0) == 0 || errno == ENOENT) return {};
  const auto error = failed("remove", place->shown);
  // A file system that is read-only says so before it looks for the name.
  if (error.sys_errno() == EROFS && is_missing(directory, place->name)) return {};
  return error;
}

Status HostFiles::remove_directory(const std::string& path) {
  const auto place = open_place(path);
  if (!place.ok()) return place.error().code() == Errc::NotFound ? Status() : Status(place.error());
  if (::unlinkat(place->directory.get(), place->name.c_str(), AT_REMOVEDIR) == 0 ||
      errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY)
    return {};
  return failed("remove", place->shown);
}

Status HostFiles::remove_tree(const std::string& path) {
  const auto info = host_.link_info(path);
  if (!info.ok()) return info.error().code() == Errc::NotFound ? Status() : info.error();
  if (info->kind != sys::FileKind::Directory) return remove(path);
  GANTRY_TRY(const auto parent, host_.open(parent_directory(path), O_RDONLY | O_DIRECTORY));
  return sys::remove_tree(parent.get(), std::string(base_name(path)))
      .in(fmt::format("removing {}", host_.outside(path)));
}

Status HostFiles::sync(const std::string& path) {
  GANTRY_TRY(const auto fd, host_.open(path, O_RDONLY | O_DIRECTORY));
  if (::syncfs(fd.get()) == 0) return {};
  return failed("sync", host_.outside(path));
}

}  // namespace gantry::driver_setup
