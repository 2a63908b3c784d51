// SPDX-License-Identifier: Apache-2.0
#include "base/sys/remove_tree.hpp"

#include "base/sys/unique_fd.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <fmt/format.h>

#include <cerrno>
#include <memory>

namespace gantry::sys {
namespace {

constexpr int kMaxDepth = 8;  // deeper than any tree of ours

Status remove_directory(int parent, const std::string& name, int depth) {
  if (depth > kMaxDepth) return Error(Errc::Corrupt, fmt::format("{} is nested too deeply", name));
  UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", name));
  const int directory = fd.get();
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(directory), ::closedir);
  if (!entries) return Error::sys(errno, fmt::format("list {}", name));
  fd.release();  // owned by entries now
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string below(entry->d_name);
    if (below == "." || below == "..") continue;
    if (::unlinkat(directory, below.c_str(), 0) == 0) continue;
    if (errno != EISDIR && errno != EPERM)
      return Error::sys(errno, fmt::format("remove {}", below));
    GANTRY_CHECK(remove_directory(directory, below, depth + 1));
  }
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0)
    return Error::sys(errno, fmt::format("remove {}", name));
  return {};
}

}  // namespace

Status remove_tree(int parent, const std::string& name) {
  return remove_directory(parent, name, 0);
}

}  // namespace gantry::sys
