// SPDX-License-Identifier: Apache-2.0
#include "base/sys/descriptor.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace gantry::sys {
namespace {

FileKind file_kind(mode_t mode) {
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

void close_descriptors(unsigned first, unsigned last, unsigned highest) {
  if (first > last) return;
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, first, last, 0U) == 0) return;
#endif
  for (unsigned fd = first; fd <= std::min(last, highest); ++fd) ::close(static_cast<int>(fd));
}

}  // namespace

Result<FileInfo> file_info(int fd, std::string_view shown) {
  struct stat st {};
  if (::fstatat(fd, "", &st, AT_EMPTY_PATH) != 0) {
    return Error::sys(errno, fmt::format("stat {}", shown));
  }
  return FileInfo{.kind = file_kind(st.st_mode),
                  .mode = st.st_mode & 07777U,
                  .uid = st.st_uid,
                  .gid = st.st_gid,
                  .size = static_cast<std::uint64_t>(st.st_size),
                  .major = major(st.st_rdev),
                  .minor = minor(st.st_rdev)};
}

bool same_file(int a, int b) {
  struct stat one {
  }, other{};
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

Result<std::string> read_link(int fd, std::string_view shown) {
  std::array<char, PATH_MAX> buffer{};
  const auto length = ::readlinkat(fd, "", buffer.data(), buffer.size());
  if (length < 0) return Error::sys(errno, fmt::format("readlink {}", shown));
  return std::string(buffer.data(), static_cast<std::size_t>(length));
}

Result<std::string> read_regular(int fd, std::size_t limit, std::string_view shown) {
  GANTRY_TRY(const FileInfo what, file_info(fd, shown));
  if (what.kind != FileKind::Regular) {
    return Error(Errc::Invalid, fmt::format("read {}: is not a regular file", shown));
  }
  std::string content;
  std::array<char, 16384> buffer{};
  for (;;) {
    const auto got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, fmt::format("read {}", shown));
    if (got == 0) return content;
    if (content.size() + static_cast<std::size_t>(got) > limit) {
      return Error(Errc::Corrupt, fmt::format("read {}: larger than {} bytes", shown, limit));
    }
    content.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

Status write_all(int fd, std::string_view content, std::string_view shown) {
  while (!content.empty()) {
    const auto wrote = ::write(fd, content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Error::sys(errno, fmt::format("write {}", shown));
    content.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Result<std::vector<std::string>> list_directory(UniqueFd directory, std::size_t limit,
                                                std::string_view shown) {
  std::vector<std::string> names;
  alignas(dirent64) std::array<char, 16384> buffer{};
  for (;;) {
    // Not readdir(): it makes three more system calls before it reads, and the agent lists a dozen
    // directories every second.
    const auto got = ::getdents64(directory.get(), buffer.data(), buffer.size());
    if (got < 0) return Error::sys(errno, fmt::format("list {}", shown));
    if (got == 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      at += entry->d_reclen;
      const std::string_view name(static_cast<const char*>(entry->d_name));
      if (name == "." || name == "..") continue;
      if (names.size() >= limit) {
        return Error(Errc::Corrupt, fmt::format("list {}: more than {} entries", shown, limit));
      }
      names.emplace_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

unsigned highest_descriptor() {
  rlimit limit{};
  constexpr rlim_t kMaxDescriptors = 1U << 20;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMaxDescriptors;
  return static_cast<unsigned>(std::min(limit.rlim_cur, kMaxDescriptors));
}

void close_all_but(std::span<const int> kept, unsigned highest) {
  unsigned next = 0;
  for (const int fd : kept) {
    const auto number = static_cast<unsigned>(fd);
    if (number > next) close_descriptors(next, number - 1, highest);
    next = number + 1;
  }
  close_descriptors(next, ~0U, highest);
}

}  // namespace gantry::sys
