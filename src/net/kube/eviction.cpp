// SPDX-License-Identifier: Apache-2.0
#include "net/kube/eviction.hpp"

#include "base/json/document.hpp"

#include <fmt/format.h>

namespace gantry::kube {

EvictionResult evict(Api& api, const Eviction& eviction) {
  const bool dry = eviction.mode == Eviction::Mode::Ask;
  const auto path =
      fmt::format("{}/eviction?timeout={}ms{}", pod_path(eviction.name_space, eviction.pod),
                  api.timeout().count(), dry ? "&dryRun=All" : "");
  const auto body = fmt::format(
      R"({{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":{},"namespace":{}}},)"
      R"("deleteOptions":{{"preconditions":{{"uid":{}}}{}}}}})",
      json::quote(eviction.pod), json::quote(eviction.name_space), json::quote(eviction.uid),
      dry ? R"(,"dryRun":["All"])" : "");
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
    case Errc::TooLarge:
    case Errc::Internal: return {EvictionOutcome::Unknown, error.text()};
    default: return {EvictionOutcome::Refused, error.text()};
  }
}

Status nominate(Api& api, const std::string& name_space, const std::string& pod,
                const std::string& uid, const std::string& node) {
  GANTRY_CHECK(
      api.patch(pod_path(name_space, pod) + "/status", Patch::Merge,
                fmt::format(R"({{"metadata":{{"uid":{}}},"status":{{"nominatedNodeName":{}}}}})",
                            json::quote(uid), json::quote(node))));
  return {};
}

}  // namespace gantry::kube
