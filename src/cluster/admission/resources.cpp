// SPDX-License-Identifier: Apache-2.0
#include "base/json/writer.hpp"
#include "cluster/admission/containers_internal.hpp"
#include "cluster/podspec/quantity.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace gantry::admission {
namespace {

struct Entry {
  std::string text;  // JSON
  podspec::Quantity quantity;
  bool asks() const { return quantity.value > 0 || !quantity.whole(); }
};
using Entries = std::map<std::string, Entry, std::less<>>;

// The GPU resources in limits or requests. A value that is not a quantity counts as 0 here and is
// rejected when the request is parsed.
Entries entries_of(const json::Value& list) {
  Entries entries;
  for (const auto member : list) {
    if (!is_gpu_resource(member.key())) continue;
    auto quantity = podspec::read_quantity(member);
    entries[member.key()] = {std::string(member.raw()),
                             quantity.ok() ? *quantity : podspec::Quantity{}};
  }
  return entries;
}

bool asks(const Entries& entries, std::string_view name) {
  const auto found = entries.find(name);
  return found != entries.end() && found->second.asks();
}

Entry one() {
  return {R"("1")", {.value = 1}};
}

Status rename_legacy(Entries& entries) {
  const auto legacy = entries.find(podspec::kAlphaNvidiaGpu);
  if (legacy == entries.end()) return {};
  const auto current = entries.find(podspec::kNvidiaGpu);
  if (current != entries.end() && current->second.quantity != legacy->second.quantity)
    return Error(Errc::Invalid,
                 fmt::format("{} and {} are the old and the new name of one resource but have "
                             "different values",
                             podspec::kAlphaNvidiaGpu, podspec::kNvidiaGpu))
        .advise(fmt::format("keep {}", podspec::kNvidiaGpu));
  entries.emplace(podspec::kNvidiaGpu, legacy->second);
  entries.erase(legacy);
  return {};
}

void fill_slot(const Policy& policy, Entries& limits, Entries& requests, const ContainerRef& place,
               PodDraft& draft) {
  if (!asks(limits, podspec::kAliyunGpuMem)) return;
  if (policy.unit_mib == 1) {
    if (!asks(limits, podspec::kShareSlot)) {
      limits.insert_or_assign(std::string(podspec::kShareSlot), one());
      if (requests.count(podspec::kShareSlot) != 0)
        requests.insert_or_assign(std::string(podspec::kShareSlot), one());
    }
    return;
  }
  if (limits.erase(std::string(podspec::kShareSlot)) +
          requests.erase(std::string(podspec::kShareSlot)) !=
      0)
    draft.warnings.push_back(fmt::format("container \"{}\": {} is removed: {} counts GiB here",
                                         place.name(), podspec::kShareSlot,
                                         podspec::kAliyunGpuMem));
}

Status fill(const Policy& policy, const ContainerRef& place, Entries& limits, Entries& requests,
            PodDraft& draft) {
  if (limits.count(podspec::kAlphaNvidiaGpu) + requests.count(podspec::kAlphaNvidiaGpu) != 0)
    draft.warnings.push_back(fmt::format("container \"{}\": {} is replaced by {}", place.name(),
                                         podspec::kAlphaNvidiaGpu, podspec::kNvidiaGpu));
  GANTRY_CHECK(rename_legacy(limits));
  GANTRY_CHECK(rename_legacy(requests));
  for (const auto& [name, entry] : requests) limits.emplace(name, entry);
  const bool share = asks(limits, podspec::kHamiGpuMem) ||
                     asks(limits, podspec::kHamiGpuMemPercentage) ||
                     asks(limits, podspec::kHamiGpuCores);
  if (share && limits.count(podspec::kNvidiaGpu) == 0) limits.emplace(podspec::kNvidiaGpu, one());
  fill_slot(policy, limits, requests, place, draft);
  return {};
}

void change(const ContainerRef& place, std::string_view list, const Entries& before,
            const Entries& after, PodEdits& edits) {
  const auto resources = place.container["resources"];
  json::Path path = place.path();
  path.emplace_back("resources");
  path.emplace_back(list);
  if (!resources[list].is(json::Kind::Object)) {
    json::Writer out;
    out.object([&] {
      for (const auto& [name, entry] : after) out.raw_member(name, entry.text);
    });
    if (!after.empty()) edits.set(path, std::move(out).text());
    return;
  }
  const auto at = [&](const std::string& name) {
    auto whole = path;
    whole.emplace_back(name);
    return whole;
  };
  for (const auto& [name, entry] : after) {
    const auto found = before.find(name);
    if (found == before.end() || found->second.text != entry.text) edits.set(at(name), entry.text);
  }
  for (const auto& [name, entry] : before) {
    if (after.count(name) == 0) edits.remove(at(name));
  }
}

}  // namespace

Status fill_resources(const json::Value& pod, const Policy& policy, PodDraft& draft) {
  for (const auto& place : containers_of(pod)) {
    const auto resources = place.container["resources"];
    const auto limits = entries_of(resources["limits"]);
    const auto requests = entries_of(resources["requests"]);
    if (limits.empty() && requests.empty()) continue;
    auto new_limits = limits;
    auto new_requests = requests;
    GANTRY_CHECK(fill(policy, place, new_limits, new_requests, draft)
                     .in(fmt::format("container \"{}\"", place.name())));
    change(place, "limits", limits, new_limits, draft.edits);
    change(place, "requests", requests, new_requests, draft.edits);
  }
  return {};
}

}  // namespace gantry::admission
