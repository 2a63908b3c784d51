// SPDX-License-Identifier: Apache-2.0
#include "base/sys/remove_tree.hpp"

#include "base/sys/unique_fd.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

namespace gantry::sys {
namespace {

Error failed(std::string_view call, std::string_view name) {
  const int err = errno;
  return Error::sys(err, fmt::format("{} {}", call, name));
}

// A directory that is being removed, above the one that is open.
struct AboveDirectory {
  std::string name;  // of the directory that was entered below it
  struct stat info {};
};

// Holds one directory open, however deep the tree is.
class TreeRemover {
 public:
  explicit TreeRemover(UniqueFd top) : open_(std::move(top)) {}

  Status run() {
    for (;;) {
      GANTRY_TRY(const auto below, remove_files());
      if (below) {
        GANTRY_CHECK(enter(*below));
      } else if (above_.empty()) {
        return {};
      } else {
        GANTRY_CHECK(leave());
      }
    }
  }

 private:
  // The first directory that is still there; nullopt if nothing is left.
  Result<std::optional<std::string>> remove_files() {
    UniqueFd listed(::openat(open_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(listed.get()), ::closedir);
    if (!entries) return failed("list", shown());
    listed.release();  // owned by entries now
    while (const dirent* entry = ::readdir(entries.get())) {
      const std::string name(entry->d_name);
      if (name == "." || name == "..") continue;
      if (::unlinkat(open_.get(), name.c_str(), 0) == 0 || errno == ENOENT) continue;
      if (errno != EISDIR && errno != EPERM) return failed("remove", name);
      return std::optional(name);
    }
    return std::optional<std::string>();
  }

  Status enter(const std::string& name) {
    AboveDirectory here{.name = name};
    if (::fstat(open_.get(), &here.info) != 0) return failed("stat", shown());
    UniqueFd below(
        ::openat(open_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!below.valid()) return failed(errno == ENOTDIR ? "remove" : "open", name);
    open_ = std::move(below);
    above_.push_back(std::move(here));
    return {};
  }

  // A process that moves a directory meanwhile must not lead us out of the tree.
  Status leave() {
    const auto& here = above_.back();
    UniqueFd up(::openat(open_.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat info {};
    if (!up.valid() || ::fstat(up.get(), &info) != 0) return failed("open", "..");
    if (info.st_dev != here.info.st_dev || info.st_ino != here.info.st_ino)
      return Error(Errc::Corrupt,
                   fmt::format("{} was moved while it was being removed", here.name));
    if (::unlinkat(up.get(), here.name.c_str(), AT_REMOVEDIR) != 0)
      return failed("remove", here.name);
    open_ = std::move(up);
    above_.pop_back();
    return {};
  }

  std::string_view shown() const { return above_.empty() ? "." : above_.back().name; }

  UniqueFd open_;
  std::vector<AboveDirectory> above_;
};

}  // namespace

Status remove_tree(int parent, const std::string& name) {
  UniqueFd top(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!top.valid()) return failed("open", name);
  GANTRY_CHECK(TreeRemover(std::move(top)).run());
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0) return failed("remove", name);
  return {};
}

}  // namespace gantry::sys
