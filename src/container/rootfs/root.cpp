// SPDX-License-Identifier: Apache-2.0
#include "container/rootfs/root.hpp"

#include "base/sys/open_in_root.hpp"
#include "container/rootfs/follow_links.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <cerrno>
#include <optional>

namespace gantry::rootfs {

using sys::FileInfo;
using sys::UniqueFd;

Result<Root> Root::at(std::string_view path) {
  std::string name(path);
  UniqueFd fd(::open(name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Error::sys(errno, fmt::format("container root {}", name));
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  return Root(std::move(name), std::move(fd));
}

std::string Root::shown(std::string_view path) const {
  while (path.starts_with('/')) path.remove_prefix(1);
  return fmt::format("/{} in the container root {}", path, name_);
}

Result<UniqueFd> Root::open(std::string_view path, int flags) const {
  return sys::open_in_root(fd_.get(), path, flags, shown(path));
}

Result<FileInfo> Root::info(std::string_view path) const {
  GANTRY_TRY(const UniqueFd fd, open(path, O_PATH));
  return sys::file_info(fd.get(), shown(path));
}

Result<FileInfo> Root::link_info(std::string_view path) const {
  GANTRY_TRY(const UniqueFd fd, open(path, O_PATH | O_NOFOLLOW));
  return sys::file_info(fd.get(), shown(path));
}

Result<std::string> Root::link(std::string_view path) const {
  GANTRY_TRY(const UniqueFd fd, open(path, O_PATH | O_NOFOLLOW));
  return sys::read_link(fd.get(), shown(path));
}

Result<std::string> Root::real_path(std::string_view path) const {
  return follow_links(path, [this](const std::string& at) {
    auto target = link(at);
    return target.ok() ? std::optional(*std::move(target)) : std::nullopt;
  });
}

Result<std::string> Root::read(std::string_view path, std::size_t limit) const {
  // O_NONBLOCK: we never wait for a FIFO or a device. open() refuses procfs symlinks
  // (/proc/self/fd/0).
  GANTRY_TRY(const UniqueFd fd, open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  return sys::read_regular(fd.get(), limit, shown(path));
}

Result<std::vector<std::string>> Root::list(std::string_view path, std::size_t limit) const {
  GANTRY_TRY(UniqueFd fd, open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK));
  return sys::list_directory(std::move(fd), limit, shown(path));
}

bool is_host_root(const Root& root) {
  struct stat inside {};
  struct stat machine {};
  return ::fstat(root.fd(), &inside) != 0 || ::stat("/", &machine) != 0 ||
         (inside.st_dev == machine.st_dev && inside.st_ino == machine.st_ino);
}

}  // namespace gantry::rootfs
