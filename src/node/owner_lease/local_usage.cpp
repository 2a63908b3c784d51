// SPDX-License-Identifier: Apache-2.0
#include "node/owner_lease/local_usage.hpp"

#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "container/grants/grants.hpp"
#include "gpu/device_users/device_users.hpp"
#include "gpu/procfs/gpus.hpp"
#include "gpu/procfs/mig.hpp"
#include "node/kubelet/checkpoint.hpp"
#include "node/owner_lease/with_ownership.hpp"
#include "sharing/daemon/client.hpp"
#include "sharing/daemon/share_record.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::owner_lease {
namespace {

constexpr std::string_view kPluginDirectory = "/var/lib/kubelet/device-plugins";
constexpr std::string_view kPersistenceDaemon = "nvidia-persiste";  // as /proc/PID/comm cuts it

// The beginnings of the ids of a GPU's devices.
struct DeviceNames {
  model::GpuUuid uuid;
  std::string node;      // "nvidia0", as GKE names it; "" if it is not known
  bool has_mig = false;  // it has MIG instances
  const ownership::ChangedParts* parts = nullptr;  // nullptr: the whole card
};

bool is_going(const ownership::ChangedParts& parts, const std::string& uuid) {
  return std::find(parts.going.begin(), parts.going.end(), uuid) != parts.going.end();
}

DeviceNames names_of(const sys::Host& host, const model::PciAddress& gpu, const MaybeParts& parts) {
  DeviceNames names{.uuid = known_uuid(host, gpu), .parts = parts ? &*parts : nullptr};
  const auto known = procfs::read_gpu(host, gpu);
  if (!known.ok() || !known->gpu.minor) return names;
  names.node = fmt::format("nvidia{}", *known->gpu.minor);
  names.has_mig = procfs::has_mig_instances(host, *known->gpu.minor);
  return names;
}

// Ids: "GPU-...", "GPU-...::3"; of GKE "nvidia0", "nvidia0/vgpu1"; "MIG-...". The driver's files do
// not say on which GPU a MIG instance is, so it counts for every GPU that has instances.
// With parts, an id of an instance ("MIG-...", of GKE "nvidia0/gi1") counts if that instance goes.
bool is_of(const std::string& id, const DeviceNames& names) {
  const auto instance = id.substr(0, std::min(id.find("::"), id.find("/vgpu")));
  if (names.parts != nullptr && (id.starts_with("MIG-") || contains(id, "/gi")))
    return is_going(*names.parts, instance);
  if (!names.uuid.text.empty() && id.starts_with(names.uuid.text)) return true;
  if (names.has_mig && id.starts_with("MIG-")) return true;
  return !names.node.empty() && (id == names.node || id.starts_with(names.node + "/"));
}

bool is_share_on(const model::GpuUuid& uuid, const DeviceNames& names) {
  return uuid == names.uuid || (names.parts != nullptr && is_going(*names.parts, uuid.text));
}

// Shares that the daemon serves.
Status add_served_shares(daemon::Client& daemon, const DeviceNames& names,
                         std::vector<std::string>& all) {
  GANTRY_TRY(const auto shares, daemon.list());
  for (const auto& state : shares) {
    const auto on_gpu = [&](const daemon::GpuState& gpu) { return is_share_on(gpu.uuid, names); };
    if (std::any_of(state.gpus.begin(), state.gpus.end(), on_gpu))
      all.push_back(fmt::format("share {}", state.share.name));
  }
  return {};
}

// Shares that the next daemon will serve: those whose record is there, unless their holder ended.
Status add_stored_shares(const sys::Host& host, const DeviceNames& names,
                         std::vector<std::string>& all) {
  const auto stored = daemon::read_records(host);
  if (!stored.problems.empty())
    return Error(stored.problems.front()).in("finding the shares of a GPU");
  for (const auto& record : stored.records) {
    if (record.holder.pid != 0 && !daemon::is_running(record.holder)) continue;
    const auto on_gpu = [&](const policy::GpuCapacity& card) {
      return is_share_on(card.uuid, names);
    };
    if (std::any_of(record.cards.begin(), record.cards.end(), on_gpu))
      all.push_back(fmt::format("share {}", record.share.name));
  }
  return {};
}

void add_grants(const sys::Host& host, const DeviceNames& names, std::vector<std::string>& all) {
  const auto granted = grants::list(host);
  if (!granted.ok()) return;
  for (const auto& written : *granted) {
    const auto& grant = written.grant;
    const bool device = std::any_of(grant.devices.begin(), grant.devices.end(),
                                    [&](const auto& uuid) { return is_of(uuid.text, names); });
    const auto on_gpu = [&](const model::GpuShare& one) { return one.uuid == names.uuid; };
    const bool part =
        grant.share && std::any_of(grant.share->parts.begin(), grant.share->parts.end(), on_gpu);
    if (device || part)
      all.push_back("pod " + (grant.pod.name.empty() ? grant.pod.uid : to_string(grant.pod)));
  }
}

// Pods that ended while no agent ran may still be in it: the kubelet removes them late.
void add_checkpoint(const sys::Host& host, const DeviceNames& names,
                    std::vector<std::string>& all) {
  const auto checkpoint = kubelet::read_checkpoint(host.outside(kPluginDirectory));
  if (!checkpoint.ok()) return;
  for (const auto& holder : checkpoint->holders) {
    if (std::any_of(holder.ids.begin(), holder.ids.end(),
                    [&](const auto& id) { return is_of(id, names); }))
      all.push_back(fmt::format("pod {} (container {})", holder.pod.uid, holder.container));
  }
}

// A program in a pod is not the machine's own service, whatever its name is.
bool yields(const device_users::DeviceUser& user, std::span<const std::string> yielding) {
  return user.pod_uid.empty() &&
         std::any_of(yielding.begin(), yielding.end(), [&](const std::string& name) {
           return name == kAnyProgram || name == user.command;
         });
}

// nvidia-persistenced lets go of a GPU only when it is stopped.
std::string name_holder(const sys::Host& host, const device_users::DeviceUser& user) {
  auto name = describe(user);
  if (user.command != kPersistenceDaemon || !user.pod_uid.empty()) return name;
  return fmt::format("{}; to end it: {}", name,
                     sys::on_machine(host, "sudo systemctl stop nvidia-persistenced"));
}

}  // namespace

model::GpuUuid known_uuid(const sys::Host& host, const model::PciAddress& gpu) {
  const auto driver = procfs::read_gpu(host, gpu);
  if (driver.ok() && !driver->gpu.uuid.text.empty()) return driver->gpu.uuid;
  const auto ledger = ownership::OwnershipStore::peek(host);
  const auto* known = ledger.ok() ? ledger->find(gpu) : nullptr;
  return known == nullptr ? model::GpuUuid{} : known->uuid;
}

Result<std::vector<std::string>> processes_and_shares(const sys::Host& host,
                                                      const model::PciAddress& gpu,
                                                      std::span<const std::string> yielding,
                                                      const MaybeParts& parts) {
  GANTRY_TRY(const auto users, parts ? device_users::find_node_users(host, parts->nodes)
                                     : device_users::find_users(host, gpu));
  auto daemon = daemon::Client::connect(host);
  const auto daemon_pid = daemon.ok() ? daemon->daemon_pid() : 0;
  std::vector<std::string> all;
  for (const auto& user : users) {
    // The share daemon's NVML process ends before the act: see QuietShareDaemon.
    const bool of_daemon = daemon_pid > 0 && user.parent == static_cast<std::uint32_t>(daemon_pid);
    if (!of_daemon && !yields(user, yielding)) all.push_back(name_holder(host, user));
  }
  const auto names = names_of(host, gpu, parts);
  const bool served = daemon.ok() && add_served_shares(*daemon, names, all).ok();
  if (!served) GANTRY_CHECK(add_stored_shares(host, names, all));
  return all;
}

Result<ownership::GpuUsage> local_usage(const sys::Host& host, const model::PciAddress& gpu,
                                        std::span<const std::string> yielding,
                                        const MaybeParts& parts) {
  GANTRY_TRY(auto holders, processes_and_shares(host, gpu, yielding, parts));
  const auto names = names_of(host, gpu, parts);
  add_grants(host, names, holders);
  add_checkpoint(host, names, holders);
  return ownership::GpuUsage{.withdrawn = true, .holders = std::move(holders)};
}

}  // namespace gantry::owner_lease
