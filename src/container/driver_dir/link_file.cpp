// SPDX-License-Identifier: Apache-2.0
// Puts one file at a second path, as cheaply as the file systems allow.
#include "container/driver_dir/layout_internal.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace gantry::driver_dir {
namespace {

constexpr const char* kSelinuxXattr = "security.selinux";

std::string self(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

Status copy_bytes(int from, int to, std::uint64_t size, const std::string& name) {
  std::uint64_t done = 0;
  std::array<char, 65536> buffer{};
  bool in_kernel = true;
  while (done < size) {
    if (in_kernel) {
      const auto moved = ::copy_file_range(from, nullptr, to, nullptr, size - done, 0);
      if (moved > 0) {
        done += static_cast<std::uint64_t>(moved);
        continue;
      }
      if (moved < 0 && errno == ENOSPC) return Error::sys(errno, fmt::format("copy {}", name));
      in_kernel = false;
    }
    const auto got = ::pread(from, buffer.data(), buffer.size(), static_cast<off_t>(done));
    if (got < 0) return Error::sys(errno, fmt::format("copy {}", name));
    if (got == 0) break;
    const auto wrote =
        ::pwrite(to, buffer.data(), static_cast<std::size_t>(got), static_cast<off_t>(done));
    if (wrote < 0) return Error::sys(errno, fmt::format("copy {}", name));
    done += static_cast<std::uint64_t>(wrote);
  }
  if (done != size) return Error(Errc::Corrupt, fmt::format("copy {}: the file shrank", name));
  return {};
}

Result<LinkMethod> duplicate(const SourceFile& source, int directory, const std::string& name,
                             CopyPolicy copies) {
  const sys::UniqueFd from(::open(self(source.fd.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!from.valid()) return Error::sys(errno, fmt::format("open {}", source.file->path));
  const sys::UniqueFd to(
      ::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!to.valid()) return Error::sys(errno, fmt::format("create {}", name));
  auto way = LinkMethod::Reflink;
  if (::ioctl(to.get(), FICLONE, from.get()) != 0) {
    if (copies == CopyPolicy::Refused) {
      ::unlinkat(directory, name.c_str(), 0);
      return Error(Errc::Unsupported, fmt::format("{} cannot be linked", source.file->path));
    }
    way = LinkMethod::Copy;
    GANTRY_CHECK(
        copy_bytes(from.get(), to.get(), static_cast<std::uint64_t>(source.status.st_size), name));
  }
  copy_label(from.get(), to.get());
  if (::fchmod(to.get(), source.status.st_mode & 0755U) != 0)
    return Error::sys(errno, fmt::format("chmod {}", name));
  return way;
}

}  // namespace

std::string_view to_string(LinkMethod way) {
  switch (way) {
    case LinkMethod::HardLink: return "hard links";
    case LinkMethod::Reflink: return "reflinks";
    case LinkMethod::Copy: break;
  }
  return "copies";
}

void copy_label(int from, int to) {
  std::array<char, 256> label{};
  const auto size = ::fgetxattr(from, kSelinuxXattr, label.data(), label.size());
  if (size > 0 &&
      ::fsetxattr(to, kSelinuxXattr, label.data(), static_cast<std::size_t>(size), 0) != 0)
    return;  // SELinux is not active, so labels do not matter
}

Result<LinkMethod> put_file(const SourceFile& source, int directory, const std::string& name,
                            CopyPolicy copies) {
  // Links through /proc/self/fd: AT_EMPTY_PATH needs a capability that an unprivileged user lacks.
  if (::linkat(AT_FDCWD, self(source.fd.get()).c_str(), directory, name.c_str(),
               AT_SYMLINK_FOLLOW) == 0) {
    return LinkMethod::HardLink;
  }
  const int err = errno;
  if (err == EXDEV || err == EPERM || err == EMLINK || err == EOPNOTSUPP || err == EROFS ||
      err == EACCES) {
    return duplicate(source, directory, name, copies);
  }
  return Error::sys(err, fmt::format("link {}", name));
}

}  // namespace gantry::driver_dir
