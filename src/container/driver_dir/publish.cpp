// SPDX-License-Identifier: Apache-2.0
#include "container/driver_dir/publish.hpp"

#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "base/sys/remove_tree.hpp"
#include "container/driver_dir/current.hpp"
#include "container/driver_dir/directory_lock_internal.hpp"
#include "container/driver_dir/layout_internal.hpp"
#include "container/plan/driver_paths.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <set>

namespace gantry::driver_dir {
namespace {

using model::DriverFile;
using model::DriverFileKind;

constexpr const char* kTemporary = ".making";  // one name is enough: we hold the lock
constexpr const char* kTemporaryLink = ".current";

bool is_library(const SourceFile& source, bool is_32bit) {
  return source.file->kind == DriverFileKind::Library && source.file->is_32bit == is_32bit;
}

Result<sys::UniqueFd> make_directory(int parent, const std::string& name) {
  if (::mkdirat(parent, name.c_str(), 0755) != 0 && errno != EEXIST)
    return Error::sys(errno, fmt::format("mkdir {}", name));
  sys::UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", name));
  if (::fchmod(fd.get(), 0755) != 0) return Error::sys(errno, fmt::format("chmod {}", name));
  return fd;
}

Status make_link(int parent, const std::string& name, const std::string& target) {
  if (::symlinkat(target.c_str(), parent, name.c_str()) == 0 || errno == EEXIST) return {};
  return Error::sys(errno, fmt::format("symlink {}", name));
}

// A relative path such as "../../../usr/local/nvidia/lib64"; both paths must not contain links.
std::string relative_path(std::string_view from, std::string_view to) {
  std::string up;
  while (!(to == from || (to.starts_with(from) && to.substr(from.size()).starts_with('/')))) {
    up += "../";
    from = from.substr(0, from.rfind('/'));  // "" for the root: every path begins with it
  }
  const auto rest = to.substr(from.size());
  return up + std::string(rest.substr(rest.starts_with('/') ? 1 : 0));
}

class DirectoryBuilder {
 public:
  DirectoryBuilder(const sys::Host& host, const model::Inventory& machine,
                   const SourceFiles& sources, int parent)
      : host_(host), machine_(machine), sources_(sources), parent_(parent) {}

  // The whole directory, under its temporary name.
  Result<std::string> make() {
    GANTRY_TRY(top_, make_directory(parent_, kTemporary));
    label(top_.get());
    own_ = own_directory();
    if (own_) {
      GANTRY_TRY(const auto to, from_here("x", *own_));  // from VERSION-DIGEST/lib64
      GANTRY_CHECK(make_link(top_.get(), "lib64", to));
      filtered_ = can_link();
    } else {
      GANTRY_CHECK(fill("lib64", false, kEverything));
    }
    if (has_32bit()) GANTRY_CHECK(fill("lib", true, kEverything));
    GANTRY_CHECK(fill_programs());
    GANTRY_CHECK(fill_sets());
    GANTRY_CHECK(fill_configuration());
    const std::string way =
        own_ && !filtered_ ? "the driver's own directory" : std::string(to_string(worst_));
    GANTRY_CHECK(write_manifest(way));
    return way;
  }

 private:
  static constexpr model::CapabilityMask kEverything = ~model::CapabilityMask{0};

  void label(int directory) {
    const auto fd = host_.open(machine_.driver.library_directory, O_RDONLY | O_DIRECTORY);
    if (fd.ok()) copy_label(fd->get(), directory);
  }

  // The driver's library directory, if it contains nothing else and can be mounted as a whole.
  std::optional<std::string> own_directory() const {
    const auto& driver = machine_.driver;
    if (driver.root == "/" || driver.library_directory.empty()) return std::nullopt;
    std::set<std::string, std::less<>> known;
    for (const auto& source : sources_.files) {
      if (!is_library(source, false)) continue;
      const auto& file = *source.file;
      const auto name = std::string(base_name(file.path));
      if (parent_directory(file.path) != driver.library_directory) return std::nullopt;
      known.insert(name);
      known.insert(file.links.begin(), file.links.end());
      if (!file.soname.empty() && !known.contains(file.soname)) return std::nullopt;
    }
    const auto names = host_.list(driver.library_directory);
    if (!names.ok()) return std::nullopt;
    const auto is_theirs = [&](const std::string& name) {
      return known.contains(name) || name.starts_with("libnvidia-") ||
             name.find("_nvidia.") != std::string::npos;
    };
    if (!std::all_of(names->begin(), names->end(), is_theirs)) return std::nullopt;
    const auto real = host_.resolve(driver.library_directory);
    return real.ok() ? std::optional(*real) : std::nullopt;
  }

  // The driver's own directory can be on a separate, even read-only file system. Then it is mounted
  // as a whole for every set instead of copying 700 MB.
  bool can_link() const {
    for (const auto& source : sources_.files) {
      if (!is_library(source, false)) continue;
      const bool linked = put_file(source, top_.get(), ".probe", CopyPolicy::Refused).ok();
      ::unlinkat(top_.get(), ".probe", 0);
      return linked;
    }
    return false;
  }

  // The relative path from the directory of `place` in the finished directory to `target`.
  Result<std::string> from_here(std::string_view place, std::string_view target) const {
    GANTRY_TRY(const auto real, host_.resolve(plan::kDriverDirectories));
    const auto full = fmt::format("{}/{}/{}", real == "/" ? "" : real, sources_.name, place);
    return relative_path(parent_directory(full), target);
  }

  bool has_32bit() const {
    return std::any_of(sources_.files.begin(), sources_.files.end(),
                       [](const SourceFile& source) { return is_library(source, true); });
  }

  // A copy is made once; the sets are linked to it.
  Status remember(const SourceFile& source, int directory, const std::string& name) {
    SourceFile copy{.file = source.file};
    copy.fd = sys::UniqueFd(::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!copy.fd.valid()) return Error::sys(errno, fmt::format("open {}", name));
    copy.status = source.status;
    ours_.insert_or_assign(source.file, std::move(copy));
    return {};
  }

  Status put_library(const SourceFile& source, int directory) {
    const auto names = plan::names_in_directory(*source.file);
    const auto ours = ours_.find(source.file);
    const auto& from = ours == ours_.end() ? source : ours->second;
    GANTRY_TRY(const auto way, put_file(from, directory, names.front(), CopyPolicy::Allowed));
    worst_ = std::max(worst_, way);
    if (way != LinkMethod::HardLink) GANTRY_CHECK(remember(source, directory, names.front()));
    for (std::size_t i = 1; i < names.size(); ++i) {
      const auto slash = names[i].find('/');
      if (slash == std::string::npos) {
        GANTRY_CHECK(make_link(directory, names[i], names.front()));
        continue;
      }
      GANTRY_TRY(const auto below, make_directory(directory, names[i].substr(0, slash)));
      label(below.get());
      GANTRY_CHECK(make_link(below.get(), names[i].substr(slash + 1), "../" + names.front()));
    }
    return {};
  }

  // All libraries of one kind that the capabilities need, in a new directory.
  Status fill(const std::string& name, bool is_32bit, model::CapabilityMask closed) {
    return fill_in(top_.get(), name, is_32bit, closed);
  }

  Status fill_in(int parent, const std::string& name, bool is_32bit, model::CapabilityMask closed) {
    GANTRY_TRY(const auto directory, make_directory(parent, name));
    label(directory.get());
    std::set<std::string> taken;  // if two libraries have the same name, the first one is used
    for (const auto& source : sources_.files) {
      if (!is_library(source, is_32bit) || !model::is_needed(*source.file, closed)) continue;
      if (!taken.insert(std::string(base_name(source.file->path))).second) continue;
      GANTRY_CHECK(put_library(source, directory.get()));
    }
    return {};
  }

  Status fill_programs() {
    GANTRY_TRY(const auto directory, make_directory(top_.get(), "bin"));
    label(directory.get());
    std::set<std::string> taken;
    for (const auto& source : sources_.files) {
      if (source.file->kind != DriverFileKind::Binary) continue;
      const auto name = plan::program_name(*source.file);
      if (!taken.insert(name).second) continue;
      GANTRY_TRY(const auto way, put_file(source, directory.get(), name, CopyPolicy::Allowed));
      if (!own_) worst_ = std::max(worst_, way);
    }
    return {};
  }

  // By their paths in a container, so that a path to one of them does not contain a version.
  Status fill_configuration() {
    std::set<std::string> taken;
    for (const auto& source : sources_.files) {
      if (source.file->kind != DriverFileKind::Config) continue;
      const auto place =
          fmt::format("{}{}", plan::kConfigName, plan::config_path_in_container(*source.file));
      if (!taken.insert(place).second) continue;
      GANTRY_TRY(const auto directory, make_directories(std::string(parent_directory(place))));
      GANTRY_TRY(const auto way, put_file(source, directory.get(), std::string(base_name(place)),
                                          CopyPolicy::Allowed));
      if (!own_) worst_ = std::max(worst_, way);
    }
    return {};
  }

  Result<sys::UniqueFd> make_directories(std::string_view path) {
    sys::UniqueFd at(::fcntl(top_.get(), F_DUPFD_CLOEXEC, 0));
    if (!at.valid()) return Error::sys(errno, "dup");
    while (!path.empty()) {
      const auto slash = std::min(path.find('/'), path.size());
      GANTRY_TRY(at, make_directory(at.get(), std::string(path.substr(0, slash))));
      label(at.get());
      path.remove_prefix(std::min(slash + 1, path.size()));
    }
    return at;
  }

  Status fill_sets() {
    GANTRY_TRY(const auto sets, make_directory(top_.get(), "sets"));
    for (const auto& set : plan::library_sets()) {
      GANTRY_TRY(const auto directory, make_directory(sets.get(), set.name));
      if (own_ && !filtered_) {
        GANTRY_TRY(const auto to, from_here(fmt::format("sets/{}/x", set.name), *own_));
        GANTRY_CHECK(make_link(directory.get(), "lib64", to));
      } else {
        GANTRY_CHECK(fill_in(directory.get(), "lib64", false, set.closed));
      }
      if (has_32bit()) {
        GANTRY_CHECK(fill_in(directory.get(), "lib", true,
                             set.closed | model::mask_of(model::Capability::Compat32)));
      }
    }
    return {};
  }

  // Starts with the name and ends with the brace that check_complete() expects.
  Status write_manifest(const std::string& way) const {
    json::Writer out(json::Layout::Indented);
    out.object([&] {
      out.member("name", sources_.name);
      out.member("made_by", way);
      out.rows("files", sources_.files, [&](const SourceFile& source) {
        out.object([&] {
          out.member("path", source.file->path);
          out.member("size", source.status.st_size);
        });
      });
    });
    const auto text = out.text() + "\n";
    const sys::UniqueFd fd(::openat(top_.get(), std::string(plan::kManifestName).c_str(),
                                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd.valid()) return Error::sys(errno, "create manifest.json");
    const auto wrote = ::write(fd.get(), text.data(), text.size());
    if (wrote < 0) return Error::sys(errno, "write manifest.json");
    if (static_cast<std::size_t>(wrote) != text.size())
      return Error::sys(ENOSPC, "write manifest.json");
    if (::fchmod(fd.get(), 0644) != 0) return Error::sys(errno, "chmod manifest.json");
    // Writes all files to disk before the rename that publishes the directory.
    if (::syncfs(fd.get()) != 0) return Error::sys(errno, "sync the prepared directory");
    return {};
  }

  const sys::Host& host_;
  const model::Inventory& machine_;
  const SourceFiles& sources_;
  int parent_;
  sys::UniqueFd top_;
  std::optional<std::string> own_;
  bool filtered_ = true;
  LinkMethod worst_ = LinkMethod::HardLink;
  std::map<const DriverFile*, SourceFile> ours_;  // files that could not be hard-linked
};

bool exists(int parent, const std::string& name) {
  return ::faccessat(parent, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Status clear(int parent, const std::string& name) {
  return exists(parent, name) ? sys::remove_tree(parent, name) : Status();
}

Result<std::string> build_and_rename(const sys::Host& host, const model::Inventory& machine,
                                     const SourceFiles& sources, int parent) {
  GANTRY_CHECK(clear(parent, kTemporary));
  GANTRY_CHECK(clear(parent, sources.name));  // it is incomplete, otherwise we would have used it
  auto made = DirectoryBuilder(host, machine, sources, parent).make();
  if (!made.ok()) {
    const auto removed = clear(parent, kTemporary);
    const auto& why = made.error();
    if (!removed.ok()) return Error(why.code(), why.text() + "; " + removed.error().text());
    return std::move(made).error();
  }
  if (::renameat(parent, kTemporary, parent, sources.name.c_str()) != 0)
    return Error::sys(errno, fmt::format("rename to {}", sources.name));
  return made;
}

// Old directories are kept for a while after they are replaced, because a container that is
// starting may have read the link before (garbage.hpp). The touch records the time.
Status touch_previous(int parent) {
  std::array<char, 256> former{};
  const std::string link(base_name(plan::kCurrentDriverLink));
  const auto length = ::readlinkat(parent, link.c_str(), former.data(), former.size() - 1);
  if (length <= 0) return {};
  const std::string_view name(former.data(), static_cast<std::size_t>(length));
  if (version_in_name(name).empty()) return {};
  if (::utimensat(parent, former.data(), nullptr, AT_SYMLINK_NOFOLLOW) == 0 || errno == ENOENT)
    return {};
  return Error::sys(errno, fmt::format("touch {}", name));
}

Status switch_current(int parent, const std::string& name) {
  GANTRY_CHECK(touch_previous(parent));
  if (::unlinkat(parent, kTemporaryLink, 0) != 0 && errno != ENOENT)
    return Error::sys(errno, "remove .current");
  if (::symlinkat(name.c_str(), parent, kTemporaryLink) != 0)
    return Error::sys(errno, "symlink .current");
  if (::renameat(parent, kTemporaryLink, parent,
                 std::string(base_name(plan::kCurrentDriverLink)).c_str()) != 0) {
    return Error::sys(errno, "rename to current");
  }
  if (::fsync(parent) != 0) return Error::sys(errno, "fsync the directory of the drivers");
  return {};
}

}  // namespace

Result<PublishResult> publish(const sys::Host& host, const model::Inventory& machine,
                              const PublishOptions& options) {
  GANTRY_TRY(const auto sources, open_sources(host, machine));
  PublishResult published{.directory =
                              fmt::format("{}/{}", plan::kDriverDirectories, sources.name)};
  const auto in_force = [&] {
    const auto now = current(host);
    return now.ok() && now->name == sources.name;
  };
  if (in_force()) return published;

  GANTRY_TRY(const auto lock, DirectoryLock::take(host, options.deadline));
  if (in_force()) return published;  // another publisher was faster
  published.outcome = PublishOutcome::Switched;
  if (!check_complete(host, sources.name).ok()) {
    GANTRY_TRY(published.way, build_and_rename(host, machine, sources, lock.directory()));
    published.outcome = PublishOutcome::Created;
  }
  GANTRY_CHECK(switch_current(lock.directory(), sources.name));
  return published;
}

}  // namespace gantry::driver_dir
