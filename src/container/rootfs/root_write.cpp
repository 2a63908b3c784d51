// SPDX-License-Identifier: Apache-2.0
// The functions of Root that write.
#include "base/sys/open_in_root.hpp"
#include "container/rootfs/mount_table.hpp"
#include "container/rootfs/root.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <optional>

namespace gantry::rootfs {

using sys::UniqueFd;

namespace {

constexpr int kTries = 16;
constexpr std::uint32_t kPermissions = 0777;  // an image must not make us set setuid

constexpr std::string_view kTemporary = ".gantry-";
constexpr std::size_t kDigits = 16;
constexpr std::time_t kStaleSeconds = 60;  // no run of ours works on one file for so long

std::string temporary_name() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    number = static_cast<std::uint64_t>(::getpid());  // O_EXCL detects a name that is taken
  }
  return fmt::format("{}{:0{}x}", kTemporary, number, kDigits);
}

bool is_temporary_name(std::string_view name) {
  return name.size() == kTemporary.size() + kDigits && name.starts_with(kTemporary) &&
         name.find_first_not_of("0123456789abcdef", kTemporary.size()) == std::string_view::npos;
}

// Removes temporary files of runs that were killed. A recent one may belong to another run.
void remove_stale_temporaries(int dir) {
  UniqueFd readable(::openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable.valid()) return;
  const auto names = sys::list_directory(std::move(readable), 65536, "the directory");
  if (!names.ok()) return;
  for (const auto& name : *names) {
    struct stat st {};
    if (!is_temporary_name(name) || ::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        st.st_mtime > ::time(nullptr) - kStaleSeconds) {
      continue;
    }
    ::unlinkat(dir, name.c_str(), 0);  // directories are not ours and stay
  }
}

struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

// In a user namespace we may not be allowed to change owners; then the files stay ours, like all
// others in that root.
bool may_not_chown(int err) {
  return err == EPERM || err == EINVAL;
}

struct FileAttributes {
  Owner owner;
  std::uint32_t mode;
};

// Owner and mode of the new file: those of the regular file that it replaces, else of the
// directory.
Result<FileAttributes> owner_and_mode(int dir, const std::string& name, std::uint32_t mode,
                                      const std::string& shown) {
  struct stat st {};
  if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISDIR(st.st_mode)) {
      return Error(Errc::Exists, fmt::format("replace {}: it is a directory", shown));
    }
    if (S_ISREG(st.st_mode)) {
      return FileAttributes{{st.st_uid, st.st_gid}, st.st_mode & kPermissions};
    }
  } else if (errno != ENOENT) {
    return Error::sys(errno, fmt::format("stat {}", shown));
  }
  if (::fstat(dir, &st) != 0) return Error::sys(errno, fmt::format("stat {}", shown));
  return FileAttributes{{st.st_uid, st.st_gid}, mode & kPermissions};
}

Status fill(int fd, std::string_view content, const FileAttributes& as, const std::string& shown) {
  GANTRY_CHECK(sys::write_all(fd, content, shown));
  struct stat st {};
  if (::fstat(fd, &st) != 0) return Error::sys(errno, fmt::format("stat {}", shown));
  const bool foreign = st.st_uid != as.owner.uid || st.st_gid != as.owner.gid;
  if (foreign && ::fchown(fd, as.owner.uid, as.owner.gid) != 0 && !may_not_chown(errno)) {
    return Error::sys(errno, fmt::format("chown {}", shown));
  }
  if (::fchmod(fd, as.mode) != 0) return Error::sys(errno, fmt::format("chmod {}", shown));
  return {};
}

// Calls make(name) with fresh names until one was free, then renames that to `name`.
template <class Make>
Status put_by_rename(int dir, const std::string& name, const std::string& shown, const Make& make) {
  remove_stale_temporaries(dir);
  for (int tries = 0; tries < kTries; ++tries) {
    const auto temporary = temporary_name();
    auto status = make(temporary);
    if (!status.ok() && status.error().sys_errno() == EEXIST) continue;
    if (status.ok() && ::renameat(dir, temporary.c_str(), dir, name.c_str()) != 0) {
      const int err = errno;
      status = err == EISDIR
                   ? Error(Errc::Exists, fmt::format("replace {}: it is a directory", shown))
                   : Error::sys(err, fmt::format("replace {}", shown));
    }
    if (!status.ok()) ::unlinkat(dir, temporary.c_str(), 0);
    return status;
  }
  return Error(Errc::Busy, fmt::format("replace {}: all temporary names are in use", shown));
}

// New directories get the owner of their parent: in a root that is mapped into a user namespace,
// that is the container's root user and not ours.
void adopt(int parent, const std::string& name) {
  struct stat st {};
  if (::fstat(parent, &st) != 0 || (st.st_uid == ::geteuid() && st.st_gid == ::getegid())) return;
  // If we cannot chown in a root, everything in it is ours anyway.
  if (::fchownat(parent, name.c_str(), st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) != 0) return;
}

}  // namespace

Result<SplitPath> split_path(std::string_view path) {
  const auto slash = path.rfind('/');
  const SplitPath place{slash == std::string_view::npos ? "/" : path.substr(0, slash),
                        slash == std::string_view::npos ? path : path.substr(slash + 1)};
  if (place.name.empty() || place.name == "." || place.name == ".." ||
      path.find('\0') != std::string_view::npos) {
    return Error(Errc::Invalid, fmt::format("\"{}\" does not name a file", path));
  }
  return place;
}

// Checks a descriptor, so that no symlink and no rename can change the result.
Status Root::may_change(int fd, std::string_view path) const {
  GANTRY_TRY(const auto mount, sys::mount_id(fd));
  GANTRY_TRY(const auto own, sys::mount_id(fd_.get()));
  if (mount == own) return {};
  struct statvfs found {};
  if (::fstatvfs(fd, &found) == 0 && (found.f_flag & ST_RDONLY) != 0) {
    return Error::sys(EROFS, fmt::format("change {}", shown(path)));
  }
  GANTRY_TRY(const bool memory, is_container_tmpfs(mount, fd_.get()));
  if (memory) return {};
  return Error::sys(EXDEV,
                    fmt::format("change {}: it is on a volume or another mount, so the host's "
                                "files would change",
                                shown(path)));
}

Status Root::make_directory(std::string_view path) const {
  const auto place = split_path(path);
  if (!place.ok()) return {};  // "", "." and ".." create nothing
  GANTRY_TRY(const UniqueFd parent, open(place->parent, O_PATH | O_DIRECTORY));
  const std::string name(place->name);
  struct stat st {};
  if (::fstatat(parent.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) return {};
  GANTRY_CHECK(may_change(parent.get(), path));
  if (::mkdirat(parent.get(), name.c_str(), 0755) == 0) {
    adopt(parent.get(), name);
  } else if (errno != EEXIST) {
    return Error::sys(errno, fmt::format("mkdir {}", shown(path)));
  }
  return {};
}

Result<UniqueFd> Root::make_directories(std::string_view path) const {
  if (auto there = open(path, O_PATH | O_DIRECTORY);
      there.ok() || there.error().sys_errno() != ENOENT) {
    return there;
  }
  for (auto end = path.find('/', 1);; end = path.find('/', end + 1)) {
    GANTRY_CHECK(make_directory(path.substr(0, end)));
    if (end == std::string_view::npos) break;
  }
  return open(path, O_PATH | O_DIRECTORY);
}

Status Root::put_file(std::string_view path, std::string_view content, std::uint32_t mode) const {
  GANTRY_TRY(const SplitPath place, split_path(path));
  GANTRY_TRY(const UniqueFd dir, make_directories(place.parent));
  GANTRY_CHECK(may_change(dir.get(), path));
  const std::string name(place.name);
  const auto where = shown(path);
  GANTRY_TRY(const FileAttributes as, owner_and_mode(dir.get(), name, mode, where));
  return put_by_rename(dir.get(), name, where, [&](const std::string& temporary) -> Status {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const UniqueFd fd(::openat(dir.get(), temporary.c_str(), kFlags, 0600));
    if (!fd.valid()) return Error::sys(errno, fmt::format("write {}", where));
    return fill(fd.get(), content, as, where);
  });
}

Status Root::put_symlink(std::string_view path, std::string_view target) const {
  GANTRY_TRY(const SplitPath place, split_path(path));
  const std::string to(target);
  if (to.empty() || to.find('\0') != std::string::npos) {
    return Error(Errc::Invalid, fmt::format("the link {} must have a target", shown(path)));
  }
  if (const auto now = link(path); now.ok() && *now == to) return {};
  GANTRY_TRY(const UniqueFd dir, make_directories(place.parent));
  GANTRY_CHECK(may_change(dir.get(), path));
  const auto where = shown(path);
  const std::string name(place.name);
  if (::symlinkat(to.c_str(), dir.get(), name.c_str()) == 0) {
    adopt(dir.get(), name);
    return {};
  }
  return put_by_rename(dir.get(), name, where, [&](const std::string& temporary) -> Status {
    if (::symlinkat(to.c_str(), dir.get(), temporary.c_str()) != 0) {
      return Error::sys(errno, fmt::format("link {}", where));
    }
    adopt(dir.get(), temporary);
    return {};
  });
}

Status Root::remove(std::string_view path) const {
  GANTRY_TRY(const SplitPath place, split_path(path));
  const auto dir = open(place.parent, O_PATH | O_DIRECTORY);
  if (!dir.ok()) {
    if (dir.error().code() == Errc::NotFound) return {};
    return dir.error();
  }
  // Checked first: on a read-only file system, unlink fails even if the file does not exist.
  struct stat st {};
  const std::string name(place.name);
  if (::fstatat(dir->get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
    return {};
  GANTRY_CHECK(may_change(dir->get(), path));
  if (::unlinkat(dir->get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return Error::sys(errno, fmt::format("remove {}", shown(path)));
  }
  return {};
}

Status Root::set_mode(std::string_view path, std::uint32_t mode) const {
  GANTRY_TRY(const UniqueFd fd, open(path, O_PATH));
  GANTRY_TRY(const auto info, sys::file_info(fd.get(), shown(path)));
  if (info.mode == mode) return {};
  GANTRY_CHECK(may_change(fd.get(), path));
  GANTRY_TRY(const auto self, sys::descriptor_path(fd.get()));
  if (::chmod(self.c_str(), mode) != 0) {
    return Error::sys(errno, fmt::format("chmod {}", shown(path)));
  }
  return {};
}

}  // namespace gantry::rootfs
