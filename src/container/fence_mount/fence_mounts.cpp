// SPDX-License-Identifier: Apache-2.0
#include "container/fence_mount/fence_mounts.hpp"

#include "base/sys/child.hpp"
#include "base/sys/unique_fd.hpp"
#include "container/fence_mount/bind_mount_internal.hpp"
#include "gpu/abi/fence.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>

namespace gantry::fence_mount {
namespace {

constexpr const char* kFencedMachine = FENCE_DIRECTORY "/machine";

Status write_map(const char* path, const std::string& text) {
  const sys::UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return Error::sys(errno, fmt::format("open {}", path));
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return Error::sys(errno, fmt::format("write {}", path));
  return {};
}

// Maps our user and group to themselves, so that we keep them.
Status new_namespaces(NamespaceKind way) {
  const auto uid = ::geteuid();
  const auto gid = ::getegid();
  const int flags =
      way == NamespaceKind::UserAndMountNamespace ? CLONE_NEWNS | CLONE_NEWUSER : CLONE_NEWNS;
  if (::unshare(flags) != 0) return Error::sys(errno, "unshare");
  if (way == NamespaceKind::UserAndMountNamespace) {
    GANTRY_CHECK(write_map("/proc/self/setgroups", "deny"));
    GANTRY_CHECK(write_map("/proc/self/uid_map", fmt::format("{0} {0} 1", uid)));
    GANTRY_CHECK(write_map("/proc/self/gid_map", fmt::format("{0} {0} 1", gid)));
  }
  // New mounts of the machine still appear here; our mounts do not appear on the machine.
  if (::mount(nullptr, "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0)
    return Error::sys(errno, "mount / (slave)");
  return {};
}

Status cover(const std::vector<std::string>& files, int fence) {
  for (const auto& file : files) GANTRY_CHECK(bind_over(fence, file, BindMode::ReadOnly));
  return {};
}

// No user, not even root, can open a device node on a nodev mount. The nodes of a simulated machine
// are not device nodes, so another node is mounted over them.
Status hide(const FenceMounts& e) {
  const bool simulated = !e.machine.empty();
  const std::string below = simulated && !e.share.empty() ? kFencedMachine : e.machine;
  for (const auto& node : e.hidden_nodes) {
    const auto place = below + node;
    const sys::UniqueFd source(::open(simulated ? "/dev/null" : place.c_str(), O_PATH | O_CLOEXEC));
    if (!source.valid() || ::access(place.c_str(), F_OK) != 0) continue;
    GANTRY_CHECK(bind_over(source.get(), place, BindMode::NoDevices));
  }
  return {};
}

}  // namespace

Status can_mount_fence(NamespaceKind way) {
  auto answer = sys::run_in_child(
      [&]() -> std::string {
        const auto status = new_namespaces(way);
        return status.ok() ? "" : status.error().text();
      },
      {});
  if (!answer.ok()) return std::move(answer).error();
  if (answer->empty()) return {};
  return Error(Errc::Denied, *answer);
}

namespace {

Status put_fence(const FenceMounts& e) {
  // Opens all sources first, because later their paths may lead to the fence; and in the new
  // namespace, because files of another namespace cannot be bound.
  GANTRY_TRY(const auto share, open_source(e.share));
  GANTRY_TRY(const auto fence_cuda, open_source(e.fence_cuda));
  GANTRY_TRY(const auto fence_nvml, open_source(e.fence_nvml));
  GANTRY_TRY(const auto real_cuda, open_optional(e.real_cuda));
  GANTRY_TRY(const auto real_nvml, open_optional(e.real_nvml));
  GANTRY_TRY(const auto machine, open_optional(e.machine));
  GANTRY_CHECK(make_mount_point(FENCE_DIRECTORY));
  GANTRY_CHECK(bind_over(share.get(), FENCE_DIRECTORY, BindMode::ReadOnly));
  if (real_cuda.valid())
    GANTRY_CHECK(bind_over(real_cuda.get(), FENCE_REAL_CUDA, BindMode::ReadOnly));
  if (real_nvml.valid())
    GANTRY_CHECK(bind_over(real_nvml.get(), FENCE_REAL_NVML, BindMode::ReadOnly));
  if (machine.valid()) GANTRY_CHECK(bind_over(machine.get(), kFencedMachine, BindMode::Writable));
  GANTRY_CHECK(cover(e.cover_cuda, fence_cuda.get()));
  return cover(e.cover_nvml, fence_nvml.get());
}

}  // namespace

Status enter_fence(const FenceMounts& e, NamespaceKind way) {
  GANTRY_CHECK(new_namespaces(way));
  if (!e.share.empty()) GANTRY_CHECK(put_fence(e));
  for (const auto& [source, place] : e.bound) {
    GANTRY_TRY(const auto directory, open_source(source));
    GANTRY_CHECK(make_mount_point(place));
    GANTRY_CHECK(bind_over(directory.get(), place, BindMode::Writable));
  }
  return hide(e);
}

}  // namespace gantry::fence_mount
