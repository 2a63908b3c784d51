// SPDX-License-Identifier: Apache-2.0
#include "sys/host.hpp"

#include "base/text.hpp"

#include <dirent.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <deque>
#include <memory>

namespace gantry::sys {
namespace {

constexpr int kMaxSymlinks = 40;  // as the kernel

std::string_view relative(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  return path.empty() ? "." : path;
}

// Seccomp profiles older than openat2 answer EPERM to every use of it, even to this one.
bool forbids_openat2(int directory) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  const UniqueFd probe(static_cast<int>(::syscall(SYS_openat2, directory, ".", &how, sizeof how)));
  return !probe.valid() && errno == EPERM;
}

FileKind kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR: return FileKind::Directory;
    case S_IFLNK: return FileKind::Symlink;
    case S_IFCHR: return FileKind::CharDevice;
    case S_IFBLK: return FileKind::BlockDevice;
    case S_IFSOCK: return FileKind::Socket;
    case S_IFIFO: return FileKind::Fifo;
    default: return FileKind::Regular;
  }
}

Result<FileInfo> info_of(int fd, std::string_view path) {
  struct stat st {};
  if (fstatat(fd, "", &st, AT_EMPTY_PATH) != 0)
    return Error::sys(errno, fmt::format("stat {}", path));
  return FileInfo{.kind = kind_of(st.st_mode),
                  .mode = st.st_mode & 07777U,
                  .uid = st.st_uid,
                  .gid = st.st_gid,
                  .size = static_cast<std::uint64_t>(st.st_size),
                  .major = major(st.st_rdev),
                  .minor = minor(st.st_rdev)};
}

Result<std::string> link_of(int fd, std::string_view path) {
  std::array<char, PATH_MAX> buffer{};
  const auto length = readlinkat(fd, "", buffer.data(), buffer.size());
  if (length < 0) return Error::sys(errno, fmt::format("readlink {}", path));
  return std::string(buffer.data(), static_cast<std::size_t>(length));
}

// Exactly the file of an O_PATH descriptor, whatever its name points at by now.
UniqueFd reopen(int fd, int flags) {
  if ((flags & O_PATH) != 0) return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  const auto self = fmt::format("/proc/self/fd/{}", fd);
  return UniqueFd(::open(self.c_str(), (flags & ~O_NOFOLLOW) | O_CLOEXEC));
}

std::optional<FileInfo> parse_table_fields(const std::vector<std::string_view>& f) {
  if (f.size() != 7 || (f[1] != "c" && f[1] != "b")) return std::nullopt;
  const auto major_number = parse_u64(f[2]);
  const auto minor_number = parse_u64(f[3]);
  const auto mode = parse_u64(f[4], 8);
  const auto uid = parse_u64(f[5]);
  const auto gid = parse_u64(f[6]);
  if (!major_number || !minor_number || !mode || !uid || !gid) return std::nullopt;
  return FileInfo{.kind = f[1] == "c" ? FileKind::CharDevice : FileKind::BlockDevice,
                  .mode = static_cast<std::uint32_t>(*mode),
                  .uid = static_cast<std::uint32_t>(*uid),
                  .gid = static_cast<std::uint32_t>(*gid),
                  .major = static_cast<std::uint32_t>(*major_number),
                  .minor = static_cast<std::uint32_t>(*minor_number)};
}

}  // namespace

Result<Host> Host::at(std::string_view root) {
  std::array<char, PATH_MAX> real{};
  const std::string given(root);
  if (::realpath(given.c_str(), real.data()) == nullptr) {
    return Error::sys(errno, fmt::format("root {}", given));
  }
  UniqueFd fd(::open(real.data(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Error::sys(errno, fmt::format("root {}", given));
  Host host(real.data(), std::move(fd));
  host.read_device_table();
  return host;
}

std::string Host::outside(std::string_view path) const {
  if (is_live()) return std::string(path);
  return fmt::format("{}/{}", root_, relative(path));
}

Result<UniqueFd> Host::open(std::string_view path, int flags) const {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const std::string name(relative(path));
  // EAGAIN: something was renamed under us while ".." was resolved; openat2(2) says to try again.
  for (int tries = 0; tries < 8; ++tries) {
    const long fd = ::syscall(SYS_openat2, fd_.get(), name.c_str(), &how, sizeof how);
    if (fd >= 0) return UniqueFd(static_cast<int>(fd));
    if (errno != EAGAIN && errno != EINTR) break;
  }
  const int err = errno;
  if (err == ENOSYS || (err == EPERM && forbids_openat2(fd_.get()))) {
    return open_walking(path, flags);
  }
  return Error::sys(err, fmt::format("open {}", outside(path)));
}

// What openat2 does, for kernels before 5.6: one component at a time, never following by the
// kernel.
Result<UniqueFd> Host::open_walking(std::string_view path, int flags) const {
  std::deque<std::string> todo;
  for (auto part : split(path, '/')) todo.emplace_back(part);
  std::vector<UniqueFd> trail;  // descriptors from the root down, so that ".." cannot pass the root
  int links = 0;
  auto here = [&] { return trail.empty() ? fd_.get() : trail.back().get(); };
  auto fail = [&](int err) { return Error::sys(err, fmt::format("open {}", outside(path))); };
  while (!todo.empty()) {
    const std::string part = std::move(todo.front());
    todo.pop_front();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!trail.empty()) trail.pop_back();
      continue;
    }
    UniqueFd next(::openat(here(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) return fail(errno);
    GANTRY_TRY(const FileInfo what, info_of(next.get(), path));
    const bool keep_link = todo.empty() && (flags & O_NOFOLLOW) != 0;
    if (what.kind != FileKind::Symlink || keep_link) {
      trail.push_back(std::move(next));
      continue;
    }
    if (++links > kMaxSymlinks) return fail(ELOOP);
    GANTRY_TRY(const std::string target, link_of(next.get(), path));
    if (target.starts_with('/')) trail.clear();
    const auto parts = split(target, '/');
    for (auto it = parts.rbegin(); it != parts.rend(); ++it) todo.emplace_front(*it);
  }
  UniqueFd fd = reopen(here(), flags);
  if (!fd.valid()) return fail(errno);
  return fd;
}

Result<std::string> Host::read(std::string_view path, std::size_t limit) const {
  // O_NONBLOCK: a FIFO in a hostile tree must not make us wait for a writer.
  GANTRY_TRY(const UniqueFd fd, open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  GANTRY_TRY(const FileInfo what, info_of(fd.get(), path));
  if (what.kind != FileKind::Regular) {
    return Error(Errc::Invalid, fmt::format("read {}: is not a regular file", outside(path)));
  }
  std::string content;
  std::array<char, 16384> buffer{};
  for (;;) {
    const auto got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, fmt::format("read {}", outside(path)));
    if (got == 0) return content;
    if (content.size() + static_cast<std::size_t>(got) > limit) {
      return Error(Errc::Corrupt,
                   fmt::format("read {}: larger than {} bytes", outside(path), limit));
    }
    content.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::optional<std::string> Host::read_value(std::string_view path) const {
  auto content = read(path);
  if (!content.ok()) return std::nullopt;
  return std::string(trim(*content));
}

Result<std::vector<std::string>> Host::list(std::string_view path) const {
  GANTRY_TRY(UniqueFd fd, open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK));
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd.get()), ::closedir);
  if (!dir) return Error::sys(errno, fmt::format("list {}", outside(path)));
  fd.release();  // owned by dir now
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return Error::sys(errno, fmt::format("list {}", outside(path)));
  std::sort(names.begin(), names.end());
  return names;
}

bool Host::exists(std::string_view path) const {
  return open(path, O_PATH).ok();
}

Result<std::string> Host::link(std::string_view path) const {
  GANTRY_TRY(const UniqueFd fd, open(path, O_PATH | O_NOFOLLOW));
  return link_of(fd.get(), path);
}

Result<std::string> Host::resolve(std::string_view path) const {
  GANTRY_TRY(const UniqueFd fd, open(path, O_PATH));
  std::array<char, PATH_MAX> buffer{};
  const auto self = fmt::format("/proc/self/fd/{}", fd.get());
  const auto length = ::readlink(self.c_str(), buffer.data(), buffer.size());
  if (length < 0) return Error::sys(errno, fmt::format("resolve {}", outside(path)));
  const std::string_view full(buffer.data(), static_cast<std::size_t>(length));
  if (is_live()) return std::string(full);
  if (full == root_) return std::string("/");
  if (!full.starts_with(root_ + "/")) {
    return Error(Errc::Invalid, fmt::format("resolve {}: moved out of the root", outside(path)));
  }
  return std::string(full.substr(root_.size()));
}

Result<FileInfo> Host::info(std::string_view path) const {
  GANTRY_TRY(const UniqueFd fd, open(path, O_PATH));
  return info_of(fd.get(), path);
}

Result<FileInfo> Host::info_of_link(std::string_view path) const {
  GANTRY_TRY(const UniqueFd fd, open(path, O_PATH | O_NOFOLLOW));
  return info_of(fd.get(), path);
}

Result<FileInfo> Host::device(std::string_view path) const {
  for (const auto& node : table_) {
    if (node.path == path) return node.info;
  }
  GANTRY_TRY(const FileInfo found, info(path));
  if (found.kind != FileKind::CharDevice && found.kind != FileKind::BlockDevice) {
    return Error(Errc::Invalid, fmt::format("{} is not a device node", outside(path)));
  }
  return found;
}

std::vector<std::string> Host::device_paths(std::string_view directory) const {
  std::vector<std::string> paths;
  const auto names = list(directory);
  if (names.ok()) {
    for (const auto& name : *names) {
      auto path = fmt::format("{}/{}", directory, name);
      const auto what = info_of_link(path);
      if (what.ok() &&
          (what->kind == FileKind::CharDevice || what->kind == FileKind::BlockDevice)) {
        paths.push_back(std::move(path));
      }
    }
  }
  const auto prefix = fmt::format("{}/", directory);
  for (const auto& node : table_) {
    const bool direct =
        node.path.starts_with(prefix) && node.path.find('/', prefix.size()) == std::string::npos;
    if (direct) paths.push_back(node.path);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

void Host::read_device_table() {
  if (is_live()) return;
  const auto table = read("/dev.table");
  if (!table.ok()) return;
  for (auto line : lines(*table)) {
    std::vector<std::string_view> fields;
    for (auto field : split(trim(line), ' ')) {
      if (!field.empty()) fields.push_back(field);
    }
    if (auto info = parse_table_fields(fields)) table_.push_back({std::string(fields[0]), *info});
  }
}

}  // namespace gantry::sys
