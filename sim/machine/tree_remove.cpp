// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "base/sys/host.hpp"
#include "sim/machine/tree_remove_internal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace gantry::sim {
namespace {

namespace fs = std::filesystem;

// The mount point of a line of mountinfo, its fifth field; proc(5): blanks and \ are "\040" there.
std::string mount_point(std::string_view line) {
  const auto fields = split(line, ' ');
  if (fields.size() < 5) return "";
  std::string path;
  for (auto rest = fields[4]; !rest.empty();) {
    const auto code = rest.starts_with('\\') ? parse_u64(rest.substr(1, 3), 8) : std::nullopt;
    path += code ? static_cast<char>(*code) : rest.front();
    rest.remove_prefix(code ? 4 : 1);
  }
  return path;
}

// A bind mount of the same filesystem has the same device number, but its own mount id.
struct Mount {
  std::uint32_t major = 0, minor = 0;
  std::uint64_t id = 0;  // 0 before Linux 5.8
  bool operator==(const Mount&) const = default;
};

Result<Mount> mount_of(int fd, const std::string& path) {
  struct statx st {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) != 0) return Error::sys(errno, path);
  const bool has_id = (st.stx_mask & STATX_MNT_ID) != 0;
  return Mount{st.stx_dev_major, st.stx_dev_minor, has_id ? st.stx_mnt_id : 0};
}

Result<sys::UniqueFd> open_directory(int parent, const char* name, const std::string& path) {
  sys::UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", path));
  return fd;
}

class Remover {
 public:
  // `mount` is the mount of the parent; nullptr at the top.
  void remove(int parent, const char* name, const std::string& path, const Mount* mount) {
    if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) return;
    if (errno != EISDIR) return keep(Error::sys(errno, fmt::format("remove {}", path)));
    keep(empty(parent, name, path, mount));
    if (::unlinkat(parent, name, AT_REMOVEDIR) != 0)
      keep(Error::sys(errno, fmt::format("remove {}", path)));
  }
  Status first() { return std::move(first_); }

 private:
  void keep(Status status) {
    if (first_.ok()) first_ = std::move(status);
  }

  Status empty(int parent, const char* name, const std::string& path, const Mount* mount) {
    GANTRY_TRY(sys::UniqueFd fd, open_directory(parent, name, path));
    GANTRY_TRY(const Mount here, mount_of(fd.get(), path));
    if (mount != nullptr && here != *mount)
      return Error(Errc::Busy, fmt::format("{} is a mount point and was not changed", path));
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(fd.get()), ::closedir);
    if (!entries) return Error::sys(errno, fmt::format("list {}", path));
    const int directory = fd.release();  // closed with `entries`
    while (const auto* entry = ::readdir(entries.get())) {
      const std::string_view child = entry->d_name;
      if (child == "." || child == "..") continue;
      remove(directory, entry->d_name, fmt::format("{}/{}", path, child), &here);
    }
    return {};
  }

  Status first_;
};

}  // namespace

Status refuse_mounts(const std::string& directory) {
  std::error_code failed;
  const auto real = fs::canonical(directory, failed).string();
  if (failed) return Error::sys(failed.value(), directory);
  GANTRY_TRY(const sys::Host host, sys::Host::at("/"));
  GANTRY_TRY(const std::string mounts, host.read("/proc/self/mountinfo"));
  for (const auto line : lines(mounts)) {
    const auto point = mount_point(line);
    if (point == real) {
      return Error(Errc::Invalid,
                   fmt::format("{} is a mount point; name a directory below it", directory));
    }
    if (point.starts_with(real + "/")) {
      return Error(Errc::Busy,
                   fmt::format("{} is mounted in the tree that would be replaced; `umount {}` "
                               "first",
                               point, point));
    }
  }
  return {};
}

Status remove_tree(const std::string& path) {
  Remover remover;
  remover.remove(AT_FDCWD, path.c_str(), path, nullptr);
  return remover.first();
}

}  // namespace gantry::sim
