// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/container_lock.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "gpu/nvml_child/cgroup.hpp"
#include "vm/vfio/holders.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fmt/format.h>

#include <vector>

namespace gantry::preflight {
namespace {

constexpr std::size_t kLocksLimit = std::size_t{4} << 20;
constexpr std::size_t kCgroupLimit = 65536;

// As in /proc/locks: "00:19:1234".
std::optional<std::string> file_id(const sys::Host& host, std::string_view path) {
  const auto file = host.open(path, O_PATH | O_NOFOLLOW);
  struct stat info {};
  if (!file.ok() || ::fstat(file->get(), &info) != 0) return std::nullopt;
  return fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev), info.st_ino);
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (const auto word : split(line, ' '))
    if (!word.empty()) words.push_back(word);
  return words;
}

// "1: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF"; one that waits has "->" as its second word.
std::optional<std::uint32_t> find_locker(std::string_view locks, std::string_view id) {
  for (const auto line : lines(locks)) {
    const auto words = words_of(line);
    if (words.size() < 6 || words[1] == "->" || words[5] != id) continue;
    const auto pid = parse_u64(words[4]);  // -1: of another process namespace
    return pid && *pid <= UINT32_MAX ? static_cast<std::uint32_t>(*pid) : 0;
  }
  return std::nullopt;
}

}  // namespace

std::string describe(const LockHolder& holder) {
  auto text = holder.pid == 0 ? std::string("a process outside this process namespace")
                              : fmt::format("process {}", holder.pid);
  if (!holder.name.empty()) text += fmt::format(" ({})", printable(holder.name));
  if (!holder.pod.empty()) text += fmt::format(" of pod {}", printable(holder.pod));
  return text;
}

std::optional<LockHolder> container_lock_holder(const sys::Host& host) {
  const auto id = file_id(host, kContainerLock);
  if (!id) return std::nullopt;
  const auto locks = host.read("/proc/locks", kLocksLimit);
  const auto pid = find_locker(locks.ok() ? *locks : "", *id);
  if (!pid) return std::nullopt;
  LockHolder holder{.pid = *pid, .name = "", .pod = ""};
  if (*pid == 0) return holder;
  holder.name = host.read_value(fmt::format("/proc/{}/comm", *pid)).value_or("");
  const auto cgroup = host.read(fmt::format("/proc/{}/cgroup", *pid), kCgroupLimit).value_or("");
  const auto owner = nvml_child::parse_cgroup_owner(cgroup);
  if (!owner.pod_uid.empty()) holder.pod = vfio::pod_name(host, owner.pod_uid);
  return holder;
}

}  // namespace gantry::preflight
