// SPDX-License-Identifier: Apache-2.0
#include "net/kube/eviction.hpp"

#include "base/json/writer.hpp"

#include <fmt/format.h>

#include <utility>

namespace gantry::kube {

namespace {

std::string eviction_json(const Eviction& eviction) {
  json::Writer out;
  out.object([&] {
    out.member("apiVersion", "policy/v1");
    out.member("kind", "Eviction");
    out.object("metadata", [&] {
      out.member("name", eviction.pod.name);
      out.member("namespace", eviction.pod.name_space);
    });
    out.object("deleteOptions", [&] {
      out.object("preconditions", [&] { out.member("uid", eviction.pod.uid); });
      if (eviction.mode == Eviction::Mode::Ask) out.array("dryRun", [&] { out.value("All"); });
    });
  });
  return std::move(out).text();
}

}  // namespace

EvictionResult evict(Api& api, const Eviction& eviction) {
  const bool dry = eviction.mode == Eviction::Mode::Ask;
  const auto path = fmt::format("{}/eviction?timeout={}ms{}",
                                pod_path(eviction.pod.name_space, eviction.pod.name),
                                api.timeout().count(), dry ? "&dryRun=All" : "");
  const auto done = api.create(path, eviction_json(eviction));
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

Status nominate(Api& api, const PodRef& pod, const std::string& node) {
  json::Writer out;
  out.object([&] {
    out.object("metadata", [&] { out.member("uid", pod.uid); });
    out.object("status", [&] { out.member("nominatedNodeName", node); });
  });
  GANTRY_CHECK(api.patch(pod_path(pod.name_space, pod.name) + "/status", Patch::Merge, out.text()));
  return {};
}

}  // namespace gantry::kube
