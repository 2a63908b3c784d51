// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/tree_writer.hpp"

#include "base/core/text.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"
#include "sim/machine/tree_remove_internal.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace gantry::sim {
namespace {

namespace fs = std::filesystem;

Status fill(int fd, std::string_view content, unsigned mode, const std::string& name) {
  while (!content.empty()) {
    const auto wrote = ::write(fd, content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Error::sys(errno, fmt::format("write {}", name));
    content.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (::fchmod(fd, mode) != 0) return Error::sys(errno, fmt::format("chmod {}", name));
  return {};
}

// Replaces an existing file in one step, because other processes may be reading it.
Status write_whole(const std::string& full, std::string_view content, unsigned mode) {
  std::string name = full;
  sys::UniqueFd fd(
      ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid() && errno == EEXIST) {
    name = join_path(parent_directory(full), ".new-XXXXXX");
    fd = sys::UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
  }
  if (!fd.valid()) return Error::sys(errno, fmt::format("create {}", full));
  auto status = fill(fd.get(), content, mode, full);
  if (status.ok() && name != full && ::rename(name.c_str(), full.c_str()) != 0)
    status = Error::sys(errno, fmt::format("replace {}", full));
  if (!status.ok()) ::unlink(name.c_str());
  return status;
}

}  // namespace

void TreeWriter::fail(Error error) {
  if (status_.ok()) status_ = std::move(error);
}

Result<std::string> TreeWriter::resolve(std::string_view path) const {
  constexpr int kMostLinks = 40;  // as the kernel
  std::string rest(path);
  std::string done;
  for (int hops = 0; !rest.empty();) {
    const auto slash = rest.find('/', 1);
    const bool last = slash == std::string::npos;
    const auto part = rest.substr(0, slash);
    rest = last ? "" : rest.substr(slash);
    if (part == "/" || part == "/.") continue;
    done += part;
    const auto link = links_.find(done);
    if (link == links_.end() || last) continue;
    if (++hops > kMostLinks) return Error::sys(ELOOP, fmt::format("follow the link {}", done));
    rest.insert(0, link->second);
    done.clear();
  }
  return done;
}

std::string TreeWriter::place(std::string_view path) {
  if (!status_.ok()) return "";
  bool bad = !path.starts_with('/') || path.size() > 3000;
  for (auto part : split(path, '/')) bad = bad || part == ".." || part.size() > 255;
  if (bad || path.find('\0') != std::string_view::npos) {
    fail(Error(Errc::Invalid, fmt::format("\"{}\" is not an absolute path without ..", path)));
    return "";
  }
  auto inside = resolve(path);
  if (!inside.ok()) fail(inside.error());
  if (!inside.ok() || inside->empty() || !make_parents(*inside)) return "";
  return *inside;
}

bool TreeWriter::make_parents(const std::string& inside) {
  const std::string parent(parent_directory(inside));
  if (parent == "/" || made_.count(parent) != 0) return true;
  if (!make_parents(parent)) return false;
  const auto full = root_ + parent;
  struct stat st {};
  if (::mkdir(full.c_str(), 0755) == 0) {
    ::chmod(full.c_str(), 0755);  // independent of the umask: other users read the tree
  } else if (errno != EEXIST || ::lstat(full.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) {
    fail(Error::sys(errno == EEXIST ? ENOTDIR : errno, fmt::format("mkdir {}", full)));
    return false;
  }
  made_[parent] = true;
  return true;
}

void TreeWriter::directory(std::string_view path) {
  const auto inside = place(path);
  if (!inside.empty()) make_parents(inside + "/x");
}

void TreeWriter::file(std::string_view path, std::string_view content, unsigned mode) {
  const auto inside = place(path);
  if (inside.empty()) return;
  auto written = write_whole(root_ + inside, content, mode);
  if (!written.ok()) return fail(std::move(written).error());
  links_.erase(inside);
}

void TreeWriter::link(std::string_view path, std::string_view target) {
  const auto inside = place(path);
  if (inside.empty()) return;
  const auto full = root_ + inside;
  ::unlink(full.c_str());
  if (::symlink(std::string(target).c_str(), full.c_str()) != 0) {
    return fail(Error::sys(errno, fmt::format("symlink {}", full)));
  }
  const auto absolute = target.starts_with('/')
                            ? fs::path(target)
                            : fs::path(parent_directory(inside)) / fs::path(target);
  links_[inside] = absolute.lexically_normal().string();
}

void TreeWriter::relative_link(std::string_view path, std::string_view to) {
  const auto here = resolve(path);
  const auto there = resolve(to);
  if (!here.ok()) return fail(here.error());
  if (!there.ok()) return fail(there.error());
  link(path, fs::path(*there).lexically_relative(parent_directory(*here)).string());
}

void TreeWriter::device(std::string_view path, DeviceNumbers numbers, unsigned mode, unsigned uid,
                        unsigned gid) {
  const auto inside = place(path);
  if (inside.empty()) return;
  if (nodes_ != DeviceNodes::Table) {
    const auto full = root_ + inside;
    ::unlink(full.c_str());
    if (::mknod(full.c_str(), S_IFCHR | mode, makedev(numbers.major, numbers.minor)) == 0 &&
        ::chown(full.c_str(), uid, gid) == 0 && ::chmod(full.c_str(), mode) == 0) {
      nodes_ = DeviceNodes::Real;  // a tree has either real nodes or a table
      return;
    }
    if (nodes_ == DeviceNodes::Real) {
      return fail(
          Error::sys(errno, fmt::format("mknod {} (needs root; --nodes table does not)", full)));
    }
    ::unlink(full.c_str());
    nodes_ = DeviceNodes::Table;
  }
  table_[inside] = fmt::format("{} c {} {} {:04o} {} {}\n", inside, numbers.major, numbers.minor,
                               mode, uid, gid);
}

void TreeWriter::socket(std::string_view path) {
  const auto inside = place(path);
  if (inside.empty()) return;
  // Reached through the directory's descriptor: sun_path has room for 107 characters only.
  const auto parent = root_ + std::string(parent_directory(inside));
  const sys::UniqueFd dir(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const sys::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto name = fmt::format("/proc/self/fd/{}/{}", dir.get(), base_name(inside));
  const bool fits = name.size() < sizeof address.sun_path;
  if (fits) std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  if (!fits || !dir.valid() || !fd.valid() ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    notes_.push_back(fmt::format("{} is a plain file: a socket could not be bound there ({})",
                                 inside, std::strerror(errno)));
    return file(inside, "", 0666);
  }
  ::chmod((root_ + inside).c_str(), 0666);
}

void TreeWriter::remove(std::string_view path) {
  const auto inside = place(path);
  if (inside.empty()) return;
  if (auto gone = remove_tree(root_ + inside); !gone.ok()) fail(std::move(gone).error());
  std::erase_if(made_, [&](const auto& entry) {
    return entry.first == inside || entry.first.starts_with(inside + "/");
  });
  std::erase_if(links_, [&](const auto& entry) {
    return entry.first == inside || entry.first.starts_with(inside + "/");
  });
  table_.erase(inside);
}

bool TreeWriter::has(std::string_view path) const {
  struct stat st {};
  const auto inside = resolve(path);
  return inside.ok() && ::lstat((root_ + *inside).c_str(), &st) == 0;
}

Status TreeWriter::open_existing() {
  GANTRY_TRY(const sys::Host host, sys::Host::at(root_));
  if (!host.exists("/dev.table")) {
    nodes_ = DeviceNodes::Real;
    return {};
  }
  nodes_ = DeviceNodes::Table;
  GANTRY_TRY(const std::string table, host.read("/dev.table"));
  for (const auto line : lines(table)) {
    table_[std::string(line.substr(0, line.find(' ')))] = std::string(line) + "\n";
  }
  return {};
}

void TreeWriter::finish() {
  if (nodes_ == DeviceNodes::Auto) nodes_ = DeviceNodes::Table;
  if (nodes_ != DeviceNodes::Table) return;
  std::string table;
  for (const auto& [path, line] : table_) table += line;
  file("/dev.table", table, 0644);
}

}  // namespace gantry::sim
