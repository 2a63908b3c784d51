// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/host_files.hpp"

#include "base/core/text.hpp"
#include "base/sys/kernel.hpp"
#include "base/sys/remove_tree.hpp"
#include "base/sys/replace_file.hpp"
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

Status copy_file(const std::string& from, const std::string& to) {
  const sys::UniqueFd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!in.valid()) return failed("open", from);
  const sys::UniqueFd out(
      ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!out.valid()) return failed("write", to);
  return copy_bytes(in.get(), out.get(), to);
}

// The archive may say other owners than root. An ordinary user's own tree is theirs already.
Status set_owner_and_mode(const std::string& path, unsigned mode) {
  if (::geteuid() == 0 && ::lchown(path.c_str(), 0, 0) != 0) return failed("chown", path);
  if (::chmod(path.c_str(), mode) != 0) return failed("chmod", path);
  return {};
}

Status sync_parent(const std::string& path) {
  const std::string directory(parent_directory(path));
  const sys::UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid() && ::fsync(fd.get()) == 0) return {};
  return failed("fsync", directory);
}

}  // namespace

Result<std::string> HostFiles::real_path(const std::string& path) const {
  GANTRY_TRY(const auto parent, host_.resolve(parent_directory(path)));
  return host_.outside(join_path(parent, base_name(path)));
}

Status HostFiles::save(const std::string& path, std::string_view content, unsigned mode) {
  GANTRY_CHECK(HostFiles::make_directory(std::string(parent_directory(path))));
  GANTRY_TRY(const auto real, real_path(path));
  return sys::replace_file_alone(real, content, mode);
}

// What is in the staging directory is ours and goes away, so a second name is enough.
Status HostFiles::copy(const std::string& from, const std::string& to, unsigned mode) {
  GANTRY_TRY(const auto source, real_path(from));
  GANTRY_TRY(const auto target, real_path(to));
  const bool ours = from.starts_with(fmt::format("{}/", kStaging));
  ::unlink(target.c_str());
  if (!ours || ::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), 0) != 0)
    GANTRY_CHECK(copy_file(source, target));
  return set_owner_and_mode(target, mode);
}

Status HostFiles::make_directory(const std::string& path) {
  return sys::real_kernel()->make_directory(host_, path);
}

Status HostFiles::make_link(const std::string& path, const std::string& target) {
  GANTRY_CHECK(sys::real_kernel()->make_symlink(host_, path, target));
  GANTRY_TRY(const auto real, real_path(path));
  return sync_parent(real);
}

Status HostFiles::rename(const std::string& from, const std::string& to) {
  GANTRY_TRY(const auto source, real_path(from));
  GANTRY_TRY(const auto target, real_path(to));
  if (::rename(source.c_str(), target.c_str()) != 0) return failed("rename to", target);
  return sync_parent(target);
}

Status HostFiles::remove(const std::string& path) {
  const auto real = real_path(path);
  if (!real.ok()) return real.error().code() == Errc::NotFound ? Status() : real.error();
  ::unlink(sys::temporary_of(*real).c_str());  // of a writer that was killed
  if (::unlink(real->c_str()) == 0 || errno == ENOENT) return {};
  return failed("remove", *real);
}

Status HostFiles::remove_directory(const std::string& path) {
  const auto real = real_path(path);
  if (!real.ok()) return real.error().code() == Errc::NotFound ? Status() : real.error();
  if (::rmdir(real->c_str()) == 0 || errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST ||
      errno == EBUSY)
    return {};
  return failed("remove", *real);
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
