// SPDX-License-Identifier: Apache-2.0
// How a kubelet chooses devices, calls the plugin and stores its answers.
#include "support/fake_kubelet.hpp"
#include "support/kubelet_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gantry::test {
namespace {

using kubelet::PreferredRequest;
using Ids = std::set<std::string>;

Ids without(const Ids& from, const Ids& these) {
  Ids rest;
  std::set_difference(from.begin(), from.end(), these.begin(), these.end(),
                      std::inserter(rest, rest.end()));
  return rest;
}

Ids both(const Ids& one, const Ids& other) {
  Ids common;
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(),
                        std::inserter(common, common.end()));
  return common;
}

Ids together(Ids one, const Ids& other) {
  one.insert(other.begin(), other.end());
  return one;
}

std::vector<std::string> list_of(const Ids& ids) {
  return {ids.begin(), ids.end()};
}

// Takes devices of `from` until there are enough; true if nothing more is needed.
bool take(const Ids& from, int count, Ids& chosen) {
  for (const auto& id : from) {
    if (static_cast<int>(chosen.size()) == count) break;
    chosen.insert(id);
  }
  return static_cast<int>(chosen.size()) == count;
}

struct ByAffinity {
  Ids aligned;
  Ids unaligned;
  Ids anywhere;
};

ByAffinity by_affinity(const std::map<std::string, kubelet::ListedDevice>& all,
                       const Ids& available, const std::optional<std::set<int>>& hint) {
  const bool any_topology = std::any_of(all.begin(), all.end(), [](const auto& device) {
    return device.second.numa_node.has_value();
  });
  if (!hint || !any_topology) return {.anywhere = available};
  ByAffinity split;
  for (const auto& id : available) {
    const auto node = all.at(id).numa_node;
    if (!node) {
      split.anywhere.insert(id);
    } else {
      (hint->count(*node) != 0 ? split.aligned : split.unaligned).insert(id);
    }
  }
  return split;
}

Error rejected(std::string text) {
  return {Errc::Busy, std::move(text)};
}

}  // namespace

Ids FakeKubelet::AllocatedDevices::all() const {
  Ids every;
  for (const auto& [node, some] : ids) every.insert(some.begin(), some.end());
  return every;
}

Status FakeKubelet::admit(const Pod& pod) {
  active_[pod.uid] = pod;
  reusable_.clear();
  for (const auto& container : pod.containers) {
    if (auto done = allocate_container(pod, container); !done.ok()) {
      active_.erase(pod.uid);
      return done;
    }
    for (const auto& [resource, what] : pods_[pod.uid][container.name]) {
      const Ids ids = what.all();
      if (container.kind == Kind::Init) {
        reusable_[resource] = together(reusable_[resource], ids);
      } else {
        reusable_[resource] = without(reusable_[resource], ids);
      }
    }
  }
  return {};
}

Status FakeKubelet::allocate_container(const Pod& pod, const Container& container) {
  bool changed = false;
  for (const auto& [resource, count] : container.limits) {
    if (devices_.count(resource) == 0) continue;  // not a plugin resource
    collect_garbage();
    GANTRY_TRY(const Ids ids, choose(pod, container, resource, count));
    if (ids.empty()) continue;
    GANTRY_TRY(const std::string reply,
               ask(resource, kubelet::kAllocate, kubelet::encode_allocate_request({list_of(ids)}),
                   options_.call_deadline));
    GANTRY_TRY(const auto answers, kubelet::decode_allocate_answer(reply));
    if (answers.empty()) return rejected("no containers return in allocation response");
    pods_[pod.uid][container.name][resource] = given(resource, ids, kubelet::encode(answers[0]));
    changed = true;
  }
  if (changed) write_checkpoint();
  return {};
}

FakeKubelet::AllocatedDevices FakeKubelet::given(const std::string& resource, const Ids& ids,
                                                 std::string answer) const {
  AllocatedDevices made;
  made.answer = std::move(answer);
  const auto& all = devices_.at(resource).all;
  for (const auto& id : ids) {
    const auto found = all.find(id);
    const auto node = found == all.end() ? std::nullopt : found->second.numa_node;
    made.ids[node.value_or(-1)].insert(id);
  }
  return made;
}

Result<Ids> FakeKubelet::choose(const Pod& pod, const Container& container,
                                const std::string& resource, int count) {
  const Ids before = [&] {
    const auto& held = pods_[pod.uid][container.name];
    const auto found = held.find(resource);
    return found == held.end() ? Ids{} : found->second.all();
  }();
  if (!before.empty() && static_cast<int>(before.size()) != count) {
    return rejected(
        fmt::format("pod \"{}\" container \"{}\" changed request for resource \"{}\" from {} to {}",
                    pod.uid, container.name, resource, before.size(), count));
  }
  const Ids healthy = devices_[resource].healthy;
  if (healthy.empty()) {
    return rejected(
        fmt::format("no healthy devices present; cannot allocate unhealthy devices {}", resource));
  }
  if (!without(before, healthy).empty()) {
    return rejected(fmt::format(
        "previously allocated devices are no longer healthy; cannot allocate unhealthy devices {}",
        resource));
  }
  if (!before.empty() || count == 0) return Ids{};

  Ids chosen;
  if (take(reusable_[resource], count, chosen)) return chosen;
  const Ids available = without(healthy, together(in_use(resource), chosen));
  const int needed = count - static_cast<int>(chosen.size());
  if (static_cast<int>(available.size()) < needed) {
    return rejected(
        fmt::format("requested number of devices unavailable for {}. Requested: {}, Available: {}",
                    resource, needed, available.size()));
  }
  const auto [aligned, unaligned, anywhere] =
      by_affinity(devices_[resource].all, available, container.numa_nodes);
  if (needed < static_cast<int>(aligned.size())) {
    GANTRY_TRY(const Ids wish, preferred(resource, together(aligned, chosen), chosen, count));
    if (take(both(wish, aligned), count, chosen) || take(aligned, count, chosen)) return chosen;
  }
  if (take(aligned, count, chosen)) return chosen;
  GANTRY_TRY(const Ids wish, preferred(resource, together(available, chosen), chosen, count));
  if (take(both(wish, available), count, chosen) || take(unaligned, count, chosen) ||
      take(anywhere, count, chosen)) {
    return chosen;
  }
  return rejected("unexpectedly allocated less resources than required");
}

Result<Ids> FakeKubelet::preferred(const std::string& resource, const Ids& available,
                                   const Ids& must, int size) {
  const auto endpoint = endpoint_of(resource);
  if (!endpoint || !endpoint->options.preferred_allocation_available) return Ids{};
  const PreferredRequest request{
      .available = list_of(available), .must_include = list_of(must), .size = size};
  GANTRY_TRY(const std::string reply,
             ask(resource, kubelet::kGetPreferredAllocation,
                 kubelet::encode_preferred_request({request}), options_.call_deadline));
  GANTRY_TRY(const auto answers, kubelet::decode_preferred_answer(reply));
  if (answers.empty()) return Ids{};
  return Ids(answers[0].begin(), answers[0].end());
}

Result<std::string> FakeKubelet::ask(const std::string& resource, std::string_view method,
                                     std::string request, std::chrono::milliseconds deadline) {
  const auto endpoint = endpoint_of(resource);
  if (!endpoint || endpoint->stopped)
    return rejected(fmt::format("endpoint {} has been stopped", resource));
  calls_.push_back(fmt::format("{} {}", method.substr(method.rfind('/') + 1), resource));
  std::optional<Result<std::string>> answer;
  endpoint->client->call(method, std::move(request), deadline,
                         [&](const grpc::CallStatus& outcome, std::string reply) {
                           answer = outcome.ok() ? Result<std::string>(std::move(reply))
                                                 : grpc::to_error(outcome);
                         });
  const auto until = std::chrono::steady_clock::now() + deadline + std::chrono::seconds{1};
  while (!answer && std::chrono::steady_clock::now() < until) {
    GANTRY_CHECK(loop_.turn(std::chrono::milliseconds{20}));
  }
  if (!answer) return Error(Errc::Timeout, "the connection was closed by the kubelet itself");
  return *std::move(answer);
}

Result<FakeKubelet::CallTimes> FakeKubelet::time_calls(const std::string& resource, int devices,
                                                       std::uint64_t calls) {
  using Clock = std::chrono::steady_clock;
  const Ids every = healthy(resource);
  CallTimes times;
  for (std::uint64_t call = 0; call < calls; ++call) {
    const auto begin = Clock::now();
    GANTRY_TRY(Ids ids, preferred(resource, every, {}, devices));
    const auto chosen = Clock::now();
    if (!take(every, devices, ids))
      return rejected(fmt::format("{} has no {} devices", resource, devices));
    GANTRY_TRY(const std::string reply,
               ask(resource, kubelet::kAllocate, kubelet::encode_allocate_request({list_of(ids)}),
                   options_.call_deadline));
    times.prefer.push_back(chosen - begin);
    times.allocate.push_back(Clock::now() - chosen);
  }
  return times;
}

void FakeKubelet::collect_garbage() {
  std::erase_if(pods_, [this](const auto& pod) { return active_.count(pod.first) == 0; });
}

Ids FakeKubelet::in_use(const std::string& resource) const {
  Ids used;
  for (const auto& [uid, containers] : pods_) {
    for (const auto& [name, resources] : containers) {
      const auto found = resources.find(resource);
      if (found != resources.end()) used = together(std::move(used), found->second.all());
    }
  }
  return used;
}

void FakeKubelet::remove(const std::string& uid) {
  active_.erase(uid);
}

Result<model::ContainerAllocateResponse> FakeKubelet::start_container(
    const std::string& uid, const std::string& container) {
  const auto pod = pods_.find(uid);
  const auto found =
      pod == pods_.end() ? decltype(pod->second.begin()){} : pod->second.find(container);
  if (pod == pods_.end() || found == pod->second.end()) return model::ContainerAllocateResponse{};
  const Resources resources = found->second;
  model::ContainerAllocateResponse merged;
  for (const auto& [resource, what] : resources) {
    const auto endpoint = endpoint_of(resource);
    if (endpoint && endpoint->options.pre_start_required) {
      auto started =
          ask(resource, kubelet::kPreStartContainer, kubelet::encode_pre_start(list_of(what.all())),
              options_.pre_start_deadline);
      if (!started.ok()) {
        return std::move(started).error().in("device plugin PreStartContainer rpc failed with err");
      }
    }
    GANTRY_TRY(auto answer, kubelet::decode_container_answer(what.answer));
    merged.env.merge(answer.env);  // the first value wins
    merged.annotations.merge(answer.annotations);
    std::move(answer.mounts.begin(), answer.mounts.end(), std::back_inserter(merged.mounts));
    std::move(answer.nodes.begin(), answer.nodes.end(), std::back_inserter(merged.nodes));
    for (auto& name : answer.cdi_devices) {
      if (std::find(merged.cdi_devices.begin(), merged.cdi_devices.end(), name) ==
          merged.cdi_devices.end()) {
        merged.cdi_devices.push_back(std::move(name));
      }
    }
  }
  return merged;
}

std::vector<std::string> FakeKubelet::ids_of(const std::string& uid, const std::string& container,
                                             const std::string& resource) const {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return {};
  const auto found = pod->second.find(container);
  if (found == pod->second.end() || found->second.count(resource) == 0) return {};
  return list_of(found->second.at(resource).all());
}

std::vector<model::DeviceAllocation> FakeKubelet::holders() const {
  std::vector<model::DeviceAllocation> all;
  for (const auto& [uid, pod] : active_) {
    for (const auto& container : pod.containers) {
      if (container.kind == Kind::Init) continue;
      for (const auto& [resource, count] : container.limits) {
        auto ids = ids_of(uid, container.name, resource);
        if (ids.empty()) continue;
        all.push_back({.pod = {.name_space = pod.pod_namespace, .name = pod.name},
                       .container = container.name,
                       .resource = resource,
                       .ids = std::move(ids)});
      }
    }
  }
  return all;
}

}  // namespace gantry::test
