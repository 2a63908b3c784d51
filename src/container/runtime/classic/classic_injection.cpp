// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/classic_injection.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "container/plan/driver_paths.hpp"
#include "container/rootfs/loader_config.hpp"
#include "container/runtime/hook/cdi_hook.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <cerrno>

namespace gantry::runtime {
namespace {

constexpr std::string_view kDone = "done\n";

struct OpenBind {
  const SourceBind* bind;
  sys::UniqueFd source;
};

// The runtime has not changed the root yet, so the host's files are still at their paths, in mounts
// of this namespace. Only files of such mounts can be mounted here.
Result<std::vector<OpenBind>> open_sources(const std::vector<SourceBind>& binds) {
  std::vector<OpenBind> opened;
  for (const auto& bind : binds) {
    sys::UniqueFd fd(::open(bind.source.c_str(), O_PATH | O_CLOEXEC));
    struct stat st {};
    if (!fd.valid() || ::fstat(fd.get(), &st) != 0) {
      return Error::sys(errno, fmt::format("open {} among the container's mounts", bind.source));
    }
    if (st.st_dev != bind.device || st.st_ino != bind.inode) {
      return Error(Errc::Denied, fmt::format("{} is not the same file in the container's mounts as "
                                             "on the host",
                                             bind.source));
    }
    opened.push_back({.bind = &bind, .source = std::move(fd)});
  }
  return opened;
}

Status not_the_host(const rootfs::Root& root) {
  struct stat theirs {};
  struct stat ours {};
  if (::fstat(root.fd(), &theirs) != 0 || ::stat("/", &ours) != 0) {
    return Error::sys(errno, "comparing the container's root with the host's");
  }
  if (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino) {
    return Error(Errc::Denied, fmt::format("{} is the host's own root", root.name()));
  }
  return {};
}

// In a root that cannot be written, mount points cannot be created. A GPU works without single
// files and without the driver's programs.
bool may_be_left_out(const SourceBind& bind, int source, const Error& why) {
  struct stat st {};
  if (why.sys_errno() != EROFS || ::fstat(source, &st) != 0) return false;
  return S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode) ||
         bind.target == plan::kContainerProgramDirectory;
}

Status bind_all(const rootfs::Root& root, const std::vector<OpenBind>& opened,
                std::vector<std::string>& notes) {
  GANTRY_TRY(const auto shared, rootfs::shared_mounts().in("mount error"));
  for (const auto& [bind, source] : opened) {
    auto options = bind->options;
    options.avoid = &shared;
    auto bound = rootfs::bind(root, source.get(), bind->target, options);
    if (bound.ok()) continue;
    if (!may_be_left_out(*bind, source.get(), bound.error()))
      return std::move(bound).error().in(fmt::format("mount error: {}", bind->source));
    notes.push_back(fmt::format("{} is left out: {}", bind->target, bound.error().text()));
  }
  return {};
}

Status find_libraries(const rootfs::Root& root, const ClassicInjection& work,
                      const std::vector<OpenBind>& otherwise, std::vector<std::string>& notes) {
  if (work.libraries.empty()) return {};
  const rootfs::LoaderOptions options{.host = work.versions,
                                      .if_read_only = rootfs::ReadOnlyPolicy::MountOver,
                                      .if_damaged = rootfs::DamagedCachePolicy::Replace};
  auto found = rootfs::configure_loader(root, work.libraries, options);
  if (found.ok()) {
    notes.insert(notes.end(), found->notes.begin(), found->notes.end());
    if (found->compat) notes.push_back("forward compatibility: " + found->compat->why);
    return {};
  }
  if (found.error().code() != Errc::Unsupported) {
    return std::move(found).error().in("ldcache error");
  }
  notes.push_back(
      fmt::format("the loader's cache is unchanged ({}); the libraries are mounted "
                  "in the loader's default directories",
                  found.error().text()));
  return bind_all(root, otherwise, notes);
}

// These files are optional: if they cannot be written, the container still starts.
Status put_files(const rootfs::Root& root, const ClassicInjection& work,
                 std::vector<std::string>& notes) {
  for (const auto& file : work.files) {
    if (file.path == rootfs::kGantryConf) continue;  // configure_loader() writes its own, if any
    auto put = root.put_file(file.path, file.content, file.mode);
    if (put.ok()) continue;
    const int err = put.error().sys_errno();
    if (err != EROFS && err != EXDEV) return std::move(put).error().in("mount error");
    notes.push_back(
        fmt::format("{} is left out ({}): {}", file.path, file.why, put.error().text()));
  }
  return {};
}

// So that the driver's libraries do not create nodes.
Status hide_params(const rootfs::Root& root, const ClassicInjection& work,
                   std::vector<std::string>& notes) {
  HookContext place{.container = root, .host = *work.host};
  auto hidden = disable_device_node_modification({}, place).in("mount error");
  notes.insert(notes.end(), place.warnings.begin(), place.warnings.end());
  return hidden;
}

Result<std::vector<std::string>> inject_inside(const ContainerProcess& process,
                                               const ClassicInjection& work) {
  GANTRY_CHECK(process.enter_mounts().in("container error"));
  GANTRY_TRY(const auto binds, open_sources(work.binds).in("mount error"));
  GANTRY_TRY(const auto otherwise, open_sources(work.loader_binds).in("mount error"));
  GANTRY_TRY(const auto root, rootfs::Root::at(work.rootfs).in("container error"));
  GANTRY_CHECK(not_the_host(root).in("container error"));
  GANTRY_CHECK(process.enter_user().in("container error"));
  std::vector<std::string> notes;
  GANTRY_CHECK(bind_all(root, binds, notes));
  GANTRY_CHECK(find_libraries(root, work, otherwise, notes));
  GANTRY_CHECK(put_files(root, work, notes));
  GANTRY_CHECK(hide_params(root, work, notes));
  if (!process.alive()) {
    return Error(Errc::NotFound,
                 fmt::format("container error: process {} has ended", process.pid()));
  }
  return notes;
}

}  // namespace

Result<std::vector<std::string>> inject_into(const ContainerProcess& process,
                                             const ClassicInjection& work) {
  GANTRY_TRY(const std::string answer, sys::run_in_child(
                                           [&]() -> std::string {
                                             const auto notes = inject_inside(process, work);
                                             if (!notes.ok()) return notes.error().text();
                                             return fmt::format("{}{}", kDone,
                                                                fmt::join(*notes, "\n"));
                                           },
                                           {})
                                           .in("container error"));
  if (!answer.starts_with(kDone)) return Error(Errc::Internal, answer);
  std::vector<std::string> notes;
  for (auto line : lines(std::string_view(answer).substr(kDone.size()))) notes.emplace_back(line);
  return notes;
}

}  // namespace gantry::runtime
