// SPDX-License-Identifier: Apache-2.0
// fence: in a container of a share, mounts the fence over every libcuda and libnvidia-ml of the
// image: its forward-compatibility libraries, its own driver, and the files of its search path.
#include "base/sys/descriptor.hpp"
#include "base/sys/open_in_root.hpp"
#include "container/fence_mount/driver_libraries.hpp"
#include "container/rootfs/mount.hpp"
#include "container/runtime/hook/cdi_hook.hpp"
#include "container/runtime/hook/register_with_share_daemon.hpp"

#include <fcntl.h>

#include <fmt/format.h>

namespace gantry::runtime {
namespace {

constexpr std::string_view kSearchPath = "LD_LIBRARY_PATH";

Result<sys::UniqueFd> open_ours(const HookArguments& arguments, std::string_view flag) {
  const auto path = arguments.last(flag);
  if (!path.starts_with('/')) {
    return Error(Errc::Invalid, fmt::format("--{} {}: must be an absolute path", flag, path));
  }
  sys::UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.valid()) {
    return Error::sys(errno, fmt::format("the fence's library {} (reinstall gantry)", path));
  }
  return fd;
}

// If the image replaces the file in the meantime, the mount only covers another file of the image.
Status cover(const rootfs::Root& root, const std::vector<std::string>& places, int ours,
             const std::vector<std::uint64_t>& avoid) {
  for (const auto& place : places) {
    const auto there = root.open(place, O_PATH);
    if (!there.ok() || sys::same_file(there->get(), ours)) continue;
    auto bound = rootfs::bind(root, ours, place, {.avoid = &avoid});
    if (!bound.ok()) return std::move(bound).in(fmt::format("the fence over {}", place));
  }
  return {};
}

}  // namespace

Status put_fence(const HookArguments& arguments, HookContext& place) {
  GANTRY_TRY(const auto cuda, open_ours(arguments, "cuda"));
  GANTRY_TRY(const auto nvml, open_ours(arguments, "nvml"));
  GANTRY_TRY(const auto avoid, rootfs::shared_mounts());
  GANTRY_TRY(const auto inside, sys::descriptor_path(place.container.fd()));
  GANTRY_TRY(const auto tree, sys::Host::at(inside));
  GANTRY_TRY(const auto config, place.config());
  const auto searched =
      fence_mount::split_search_path(config.variable(kSearchPath).value_or(""), "/");
  GANTRY_TRY(const auto places, fence_mount::find_driver_libraries(tree, searched));
  GANTRY_CHECK(cover(place.container, places.cuda, cuda.get(), avoid));
  GANTRY_CHECK(cover(place.container, places.nvml, nvml.get(), avoid));
  const auto share = arguments.last("share");
  if (share.empty()) return {};
  auto told = register_with_share_daemon(place.host, share, place.pid);
  if (told.ok() || told.error().code() != Errc::Denied) return told;
  // A rootless engine may not ask the share daemon; its processes still attach.
  place.warnings.push_back(told.error().text());
  return {};
}

}  // namespace gantry::runtime
