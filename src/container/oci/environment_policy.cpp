// SPDX-License-Identifier: Apache-2.0
// The environment can come from the image's author, so the policy decides about its requests.
#include "container/oci/device_list.hpp"
#include "container/oci/request_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::oci {
namespace {

using config::EnvironmentPolicy;
using model::RequestSource;

void refuse(DeviceRequest& asked, Decision& decision, std::string why) {
  decision.reasons.push_back(why);
  decision.warnings.push_back(fmt::format("{} is ignored: {}", fmt::join(asked.words, ", "), why));
  asked.devices.clear();
  asked.source = RequestSource::None;
}

// The slot of the container's share: the node agent names it for engines without CDI.
bool is_own_slot(const Grant& grant, const std::string& entry) {
  if (!grant.share || !is_qualified(entry)) return false;
  const auto [kind, name] = split_qualified_name(entry);
  return kind == "gantry.dev/share" &&
         (name == grant.share->name || among(grant.share->other_slots, name));
}

// A granted GPU in the form in which it was requested: a CDI name stays one.
std::string named_like(const std::string& entry, const std::string& uuid) {
  if (!is_qualified(entry) || split_qualified_name(entry).kind != kGpuKind) return uuid;
  return fmt::format("{}={}", kGpuKind, uuid);
}

bool is_granted(const Grant& grant, const std::string& id) {
  return among(grant.devices, model::GpuUuid{id});
}

// The granted device that an entry names; "" if it names another device or none.
std::string granted_device(const Grant& grant, const std::string& entry,
                           const RequestLookups& lookups) {
  if (is_own_slot(grant, entry)) return entry;
  auto id = is_qualified(entry) ? std::string(split_qualified_name(entry).name) : entry;
  if (!is_granted(grant, id)) id = lookups.uuid ? lookups.uuid(id) : std::string();
  return is_granted(grant, id) ? named_like(entry, id) : std::string();
}

void keep_granted(DeviceRequest& asked, const Grant& grant, const RequestLookups& lookups,
                  Decision& decision) {
  if (asked.devices == std::vector<std::string>{"none"}) return;
  std::vector<std::string> kept;
  for (const auto& entry : asked.devices) {
    if (entry == "all" || (is_qualified(entry) && split_qualified_name(entry).name == "all")) {
      for (const auto& uuid : grant.devices) {
        auto device = named_like(entry, uuid.text);
        if (!among(kept, device)) kept.push_back(std::move(device));
      }
      continue;
    }
    if (is_own_slot(grant, entry)) asked.slots.push_back(entry);
    auto device = granted_device(grant, entry, lookups);
    if (device.empty()) {
      decision.warnings.push_back(fmt::format(
          "`{}` is not given: the node agent has not granted it to this container", entry));
      decision.reasons.push_back(fmt::format("`{}` was not granted", entry));
    } else if (!among(kept, device)) {
      kept.push_back(std::move(device));
    }
  }
  asked.devices = std::move(kept);
  if (asked.devices.empty()) {
    asked.source = RequestSource::None;
    return;
  }
  decision.reasons.push_back(
      fmt::format("granted by the node agent: {}", fmt::join(asked.devices, ", ")));
}

void apply_kubernetes_policy(DeviceRequest& asked, const PodContainer& pod,
                             const std::string& policy, const RequestLookups& lookups,
                             Decision& decision) {
  if (policy == "any") {
    decision.reasons.emplace_back("a pod's environment counts (kubernetes-environment = \"any\")");
    return;
  }
  if (policy == "never") {
    return refuse(asked, decision,
                  "a pod's environment never counts (kubernetes-environment = \"never\")");
  }
  if (pod.uid.empty()) {
    return refuse(
        asked, decision,
        "the container belongs to a pod, but the engine does not name the pod, so no grant "
        "can be found (kubernetes-environment = \"granted\")");
  }
  const auto grant = lookups.grant ? lookups.grant(pod)
                                   : Result<Grant>(Error(Errc::NotFound, "there are no grants"));
  if (!grant.ok() && grant.error().code() != Errc::NotFound) {
    return refuse(asked, decision,
                  fmt::format("the grant to container {} of pod {} is not trusted: {}",
                              pod.container, pod.uid, grant.error().text()));
  }
  if (!grant.ok()) {
    return refuse(asked, decision,
                  fmt::format("nothing is granted to container {} of pod {}; a pod gets GPUs by "
                              "resources.limits (nvidia.com/gpu), not by its environment",
                              pod.container, pod.uid));
  }
  keep_granted(asked, *grant, lookups, decision);
}

}  // namespace

void apply_policy(DeviceRequest& asked, const Container& container,
                  const config::Settings& settings, const RequestLookups& lookups,
                  Decision& decision) {
  if (asked.source == RequestSource::None) return;
  // Some engines copy a pod's own annotations to its containers (CRI-O all of them, containerd
  // those in pod_annotations), so in a pod only the node agent's grants count.
  if (container.pod) {
    return apply_kubernetes_policy(asked, *container.pod, settings.gantry.kubernetes_environment,
                                   lookups, decision);
  }
  if (asked.source != RequestSource::Environment) {
    decision.reasons.emplace_back(asked.source == RequestSource::Annotation
                                      ? "annotations come from the engine and have precedence"
                                      : "volume mounts are accepted by config.toml");
    return;
  }
  const auto policy = config::environment_policy(settings);
  if (policy == EnvironmentPolicy::Never) {
    return refuse(asked, decision, "the environment never counts (environment = \"never\")");
  }
  if (policy == EnvironmentPolicy::Privileged && !container.privileged) {
    return refuse(asked, decision,
                  "the environment counts for privileged containers only, and this one's bounding "
                  "set has no CAP_SYS_ADMIN (environment = \"privileged\" or "
                  "accept-nvidia-visible-devices-envvar-when-unprivileged = false)");
  }
  decision.reasons.emplace_back(policy == EnvironmentPolicy::Any
                                    ? "the environment counts (environment = \"any\")"
                                    : "privileged, so the environment counts");
}

}  // namespace gantry::oci
