// SPDX-License-Identifier: Apache-2.0
#include "node/why/process.hpp"

#include "base/core/text.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/open_in_root.hpp"
#include "gpu/probe/kernel_view.hpp"

#include <fcntl.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <tuple>

namespace gantry::why {
namespace {

constexpr std::size_t kFileLimit = std::size_t{1} << 20;
constexpr std::size_t kMountLimit = std::size_t{4} << 20;
constexpr std::size_t kProgramLimit = std::size_t{64} << 20;
constexpr std::size_t kNodeLimit = 1024;
constexpr std::size_t kIdLeast = 12;
constexpr auto kSettle = std::chrono::milliseconds(20);
constexpr int kSettleTries = 50;

bool is_id(std::string_view text) {
  return text.size() >= kIdLeast && std::all_of(text.begin(), text.end(), [](unsigned char letter) {
           return std::isalnum(letter) != 0 || letter == '-' || letter == '_';
         });
}

// The id in one part of a cgroup path: "0123...", "cri-containerd-0123....scope",
// "system.slice:docker:0123..."; "" if it does not begin with `wanted`.
std::string_view id_in(std::string_view part, std::string_view wanted) {
  if (part.ends_with(".scope")) part.remove_suffix(std::string_view(".scope").size());
  for (auto at = part.find(wanted); at != std::string_view::npos; at = part.find(wanted, at + 1)) {
    if (at == 0 || part[at - 1] == '-' || part[at - 1] == ':') return part.substr(at);
  }
  return "";
}

// The cgroup nearest to the root counts: a container that may create cgroups below its own could
// give them the name of another container.
struct CgroupMatch {
  std::size_t depth = 0;
  std::string id;
};
std::optional<CgroupMatch> place_in(std::string_view cgroups, std::string_view wanted) {
  std::optional<CgroupMatch> best;
  for (const auto line : lines(cgroups)) {
    const auto path = line.find(":/");
    if (path == std::string_view::npos) continue;
    std::size_t depth = 0;
    for (const auto part : split(line.substr(path + 2), '/')) {
      ++depth;
      const auto id = id_in(part, wanted);
      if (id.empty() || (best && best->depth <= depth)) continue;
      best = CgroupMatch{depth, std::string(id)};
    }
  }
  return best;
}

// In ticks since boot: the twenty-second field of stat. The process name before it may contain
// anything.
std::uint64_t start_of(const sys::Host& machine, std::uint64_t pid) {
  const auto text = machine.read(fmt::format("/proc/{}/stat", pid), kFileLimit);
  const auto name_end = text.ok() ? text->rfind(") ") : std::string::npos;
  if (name_end == std::string::npos) return 0;
  const auto words = split(std::string_view(*text).substr(name_end + 2), ' ');
  return words.size() > 19 ? parse_u64(words[19]).value_or(0) : 0;
}

Result<std::string> read_at(int process, const char* name, std::size_t limit) {
  const sys::UniqueFd file(::openat(process, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return Error::sys(errno, fmt::format("{} of the container's process", name));
  return sys::read_regular(file.get(), limit, name);
}

// Between its creation and its start, a container's process is still the runtime.
void wait_until_started(int process) {
  for (int i = 0; i < kSettleTries; ++i) {
    const auto name = read_at(process, "comm", kFileLimit);
    if (!name.ok() || !name->starts_with("runc:[")) return;
    std::this_thread::sleep_for(kSettle);
  }
}

std::vector<std::string> nodes_in(const rootfs::Root& root) {
  std::vector<std::string> nodes;
  const auto names = root.list("/dev", 65536);
  if (!names.ok()) return nodes;
  for (const auto& name : *names) {
    if (nodes.size() >= kNodeLimit) break;
    if (!name.starts_with("nvidia") && name != "dxg") continue;
    const auto info = root.info("/dev/" + name);
    if (info.ok() && info->kind == sys::FileKind::CharDevice) nodes.push_back(name);
  }
  return nodes;
}

Result<OpenContainer> open_process(const sys::Host& machine, int pid) {
  GANTRY_TRY(const auto process,
             machine.open(fmt::format("/proc/{}", pid), O_RDONLY | O_DIRECTORY));
  wait_until_started(process.get());
  ContainerView inside;
  GANTRY_TRY(const auto environment, read_at(process.get(), "environ", kFileLimit));
  for (const auto entry : split(environment, '\0')) inside.environment.emplace_back(entry);
  GANTRY_TRY(inside.mountinfo, read_at(process.get(), "mountinfo", kMountLimit));
  if (const auto program = read_at(process.get(), "exe", kProgramLimit); program.ok())
    inside.program_names_cuda = contains(*program, "libcuda.so");
  GANTRY_TRY(const auto path, sys::descriptor_path(process.get()));
  GANTRY_TRY(auto root, rootfs::Root::at(path + "/root"));
  inside.nodes = nodes_in(root);
  sys::UniqueFd network(::openat(process.get(), "ns/net", O_RDONLY | O_CLOEXEC));
  return OpenContainer{std::move(root), std::move(inside), std::move(network)};
}

}  // namespace

Result<int> container_process(const sys::Host& machine, std::string_view container_id) {
  if (!is_id(container_id))
    return Error(Errc::Invalid,
                 "a container id has at least 12 letters and digits; crictl ps shows it");
  GANTRY_TRY(const auto entries, machine.list("/proc"));
  std::optional<std::tuple<std::size_t, std::uint64_t, std::uint64_t>> oldest;
  std::string id;
  for (const auto& entry : entries) {
    const auto pid = parse_u64(entry);
    if (!pid) continue;
    const auto cgroup = machine.read(fmt::format("/proc/{}/cgroup", *pid), kFileLimit);
    const auto place = cgroup.ok() ? place_in(*cgroup, container_id) : std::nullopt;
    if (!place) continue;
    const auto found = std::tuple(place->depth, start_of(machine, *pid), *pid);
    if (oldest && id != place->id && std::get<0>(*oldest) == place->depth)
      return Error(Errc::Invalid,
                   fmt::format("the ids of two containers begin with {}; write more of the id",
                               container_id));
    if (oldest && *oldest <= found) continue;
    oldest = found;
    id = place->id;
  }
  if (!oldest)
    return Error(Errc::NotFound,
                 fmt::format("no process of container {} runs on this node", container_id));
  return static_cast<int>(std::get<2>(*oldest));
}

Result<OpenContainer> open_container(const sys::Host& machine, std::string_view container_id) {
  const auto open_on = [&](const sys::Host& processes) -> Result<OpenContainer> {
    GANTRY_TRY(const int pid, container_process(processes, container_id));
    GANTRY_TRY(auto container, open_process(processes, pid));
    container.inside.driver_version = probe::read_driver_module(machine).version;
    return container;
  };
  auto container = open_on(machine);
  if (container.ok() || machine.is_live() || container.error().code() != Errc::NotFound)
    return container;
  GANTRY_TRY(const auto here, sys::Host::at("/"));
  return open_on(here);
}

}  // namespace gantry::why
