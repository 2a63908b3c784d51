// SPDX-License-Identifier: Apache-2.0
#include "net/kube/eviction.hpp"

#include "base/json/document.hpp"

#include <fmt/format.h>

namespace gantry::kube {

EvictAnswer evict(Api& api, const Eviction& eviction) {
  const bool dry = eviction.mode == Eviction::Mode::Ask;
  const auto path =
      fmt::format("{}/eviction?timeout={}ms{}", pod_path(eviction.name_space, eviction.pod),
                  api.timeout().count(), dry ? "&dryRun=All" : "");
  const auto body = fmt::format(
      R"({{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":{},"namespace":{}}},)"
      R"("deleteOptions":{{"preconditions":{{"uid":{}}}{}}}}})",
      json::quoted(eviction.pod), json::quoted(eviction.name_space), json::quoted(eviction.uid),
      dry ? R"(,"dryRun":["All"])" : "");
  const auto done = api.create(path, body);
  if (done.ok()) return {Evicted::Done, ""};
  const auto& error = done.error();
  if (error.sys_errno() != 0) return {Evicted::Unknown, error.text()};
  switch (error.code()) {
    case Errc::NotFound:
    case Errc::Exists: return {Evicted::Gone, error.text()};
    case Errc::Busy: return {Evicted::Protected, error.text()};
    case Errc::Timeout:
    case Errc::Corrupt:
    case Errc::Internal: return {Evicted::Unknown, error.text()};
    default: return {Evicted::Refused, error.text()};
  }
}

Status nominate(Api& api, const std::string& name_space, const std::string& pod,
                const std::string& uid, const std::string& node) {
  GANTRY_CHECK(
      api.patch(pod_path(name_space, pod) + "/status", Patch::Merge,
                fmt::format(R"({{"metadata":{{"uid":{}}},"status":{{"nominatedNodeName":{}}}}})",
                            json::quoted(uid), json::quoted(node))));
  return {};
}

}  // namespace gantry::kube
