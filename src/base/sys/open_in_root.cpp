// SPDX-License-Identifier: Apache-2.0
#include "base/sys/open_in_root.hpp"

#include "base/core/text.hpp"
#include "base/sys/descriptor.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <fmt/format.h>

#include <cerrno>
#include <deque>
#include <vector>

namespace gantry::sys {
namespace {

constexpr int kMaxSymlinks = 40;                  // as the kernel
constexpr std::size_t kMaxOpenDirectories = 512;  // descriptors one walk may hold
constexpr int kMaxAttempts = 64;  // a tenant that renames in a loop can only delay us

// Seccomp profiles older than openat2 answer EPERM to every use of it, even to this one.
bool forbids_openat2(int directory) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  const UniqueFd probe(static_cast<int>(::syscall(SYS_openat2, directory, ".", &how, sizeof how)));
  return !probe.valid() && errno == EPERM;
}

// Does the work of openat2, one component at a time; the kernel follows no links.
class PathWalk {
 public:
  PathWalk(int root, std::string_view shown) : root_(root), shown_(shown) {}

  Result<UniqueFd> open(std::string_view path, int flags) {
    push_front(path);
    while (!todo_.empty()) {
      const std::string part = std::move(todo_.front());
      todo_.pop_front();
      GANTRY_CHECK(step(part, flags));
    }
    return reopen(here(), flags).in(fmt::format("open {}", shown_));
  }

 private:
  int here() const { return trail_.empty() ? root_ : trail_.back().get(); }
  Error failed(int err) const { return Error::sys(err, fmt::format("open {}", shown_)); }

  void push_front(std::string_view path) {
    const auto parts = split(path, '/');
    for (auto it = parts.rbegin(); it != parts.rend(); ++it) todo_.emplace_front(*it);
  }

  Status step(const std::string& part, int flags) {
    if (part.empty() || part == ".") return {};
    if (part == "..") {
      if (!trail_.empty()) trail_.pop_back();
      return {};
    }
    if (trail_.size() >= kMaxOpenDirectories) return failed(ENAMETOOLONG);
    UniqueFd next(::openat(here(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) return failed(errno);
    struct stat st {};
    if (::fstat(next.get(), &st) != 0) return failed(errno);
    const bool keep_link = todo_.empty() && (flags & O_NOFOLLOW) != 0;
    if (!S_ISLNK(st.st_mode) || keep_link) {
      trail_.push_back(std::move(next));
      return {};
    }
    if (++links_ > kMaxSymlinks) return failed(ELOOP);
    GANTRY_TRY(const std::string target, read_link(next.get(), shown_));
    if (target.starts_with('/')) trail_.clear();
    push_front(target);
    return {};
  }

  int root_;
  std::string_view shown_;
  std::deque<std::string> todo_;
  std::vector<UniqueFd> trail_;  // from the root down, so that ".." cannot pass the root
  int links_ = 0;
};

constexpr std::size_t kFdinfoLimit = 64 << 10;

// 0 on kernels before 5.8, which do not say.
std::uint64_t mount_by_statx(int fd) {
  struct statx found {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &found) != 0) return 0;
  return (found.stx_mask & STATX_MNT_ID) != 0 ? found.stx_mnt_id : 0;
}

}  // namespace

std::string_view relative_to_root(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  return path.empty() ? "." : path;
}

Result<UniqueFd> open_in_root(int root, std::string_view path, int flags, std::string_view shown) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const std::string name(relative_to_root(path));
  // EAGAIN: something was renamed under us while ".." was resolved; openat2(2) says to try again.
  for (int tries = 0; tries < kMaxAttempts; ++tries) {
    const long fd = ::syscall(SYS_openat2, root, name.c_str(), &how, sizeof how);
    if (fd >= 0) return UniqueFd(static_cast<int>(fd));
    if (errno != EAGAIN && errno != EINTR) break;
  }
  const int err = errno;
  if (err == ENOSYS || err == EAGAIN || (err == EPERM && forbids_openat2(root))) {
    return PathWalk(root, shown).open(path, flags);
  }
  return Error::sys(err, fmt::format("open {}", shown));
}

Result<std::string> descriptor_path(int fd) {
  constexpr const char* kDescriptors = "/proc/thread-self/fd";
  const UniqueFd proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd descriptors(::open(kDescriptors, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!proc.valid() || !descriptors.valid())
    return Error::sys(errno, fmt::format("open {}", kDescriptors));
  struct statfs where {};
  const bool is_procfs =
      ::fstatfs(descriptors.get(), &where) == 0 && where.f_type == PROC_SUPER_MAGIC;
  if (!is_procfs || mount_by_statx(proc.get()) != mount_by_statx(descriptors.get())) {
    return Error(Errc::Denied,
                 fmt::format("{} is not procfs: something else is mounted there", kDescriptors));
  }
  return fmt::format("{}/{}", kDescriptors, fd);
}

Result<std::uint64_t> mount_id(int fd) {
  if (const auto mount = mount_by_statx(fd); mount != 0) return mount;
  GANTRY_CHECK(descriptor_path(fd));  // checks that /proc is procfs
  const auto path = fmt::format("/proc/thread-self/fdinfo/{}", fd);
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Error::sys(errno, path);
  GANTRY_TRY(const std::string text, read_regular(file.get(), kFdinfoLimit, path));
  for (const auto line : lines(text)) {  // "mnt_id:\t27"
    if (!line.starts_with("mnt_id:")) continue;
    if (const auto id = parse_u64(trim(line.substr(7)))) return *id;
  }
  return Error(Errc::Corrupt, fmt::format("{} has no mount id", path));
}

Result<UniqueFd> reopen(int fd, int flags) {
  if ((flags & O_PATH) != 0) {
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) return Error::sys(errno, "dup");
    struct stat st {};
    if ((flags & O_DIRECTORY) != 0 && (::fstat(fd, &st) != 0 || !S_ISDIR(st.st_mode))) {
      return Error::sys(ENOTDIR, "reopen");
    }
    return copy;
  }
  GANTRY_TRY(const std::string path, descriptor_path(fd));
  struct stat st {};
  if (::fstat(fd, &st) != 0) return Error::sys(errno, "stat");
  if (S_ISLNK(st.st_mode)) return Error::sys(ELOOP, "reopen");
  UniqueFd again(::open(path.c_str(), (flags & ~O_NOFOLLOW) | O_CLOEXEC));
  if (!again.valid()) return Error::sys(errno, "reopen");
  return again;
}

}  // namespace gantry::sys
