// SPDX-License-Identifier: Apache-2.0
#include "net/kube/eviction.hpp"

#include "base/json/document.hpp"

#include <fmt/format.h>

namespace gantry::kube {

EvictionResult evict(Api& api, const Eviction& eviction) {
  const bool dry = eviction.mode == Eviction::Mode::Ask;
  const auto path = fmt::format("{}/eviction?timeout={}ms{}",
                                pod_path(eviction.pod.name_space, eviction.pod.name),
                                api.timeout().count(), dry ? "&dryRun=All" : "");
  const auto body = fmt::format(
      R"({{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":{},"namespace":{}}},)"
      R"("deleteOptions":{{"preconditions":{{"uid":{}}}{}}}}})",
      json::quote(eviction.pod.name), json::quote(eviction.pod.name_space),
      json::quote(eviction.pod.uid), dry ? R"(,"dryRun":["All"])" : "");
  const auto done = api.create(path, body);
  if (done.ok()) return {EvictionOutcome::Done, ""};
  const auto& error = done.error();
  if (error.sys_errno() != 0) return {EvictionOutcome::Unknown, error.text()};
  switch (error.code()) {
    case Errc::NotFound:
    case Errc::Exists: return {EvictionOutcome::Gone, error.text()};
    case Errc::Busy: return {EvictionOutcome::Protected, error.text()};
    case Errc::Timeout:
    case Errc::Corrupt:
    case Errc::Internal: return {EvictionOutcome::Unknown, error.text()};
    default: return {EvictionOutcome::Refused, error.text()};
  }
}

Status nominate(Api& api, const PodRef& pod, const std::string& node) {
  GANTRY_CHECK(
      api.patch(pod_path(pod.name_space, pod.name) + "/status", Patch::Merge,
                fmt::format(R"({{"metadata":{{"uid":{}}},"status":{{"nominatedNodeName":{}}}}})",
                            json::quote(pod.uid), json::quote(node))));
  return {};
}

}  // namespace gantry::kube
