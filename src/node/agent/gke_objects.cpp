// SPDX-License-Identifier: Apache-2.0
#include "node/agent/gke_objects.hpp"

#include "base/core/text.hpp"
#include "node/agent/node_objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::agent {
namespace {

constexpr std::array<unsigned, 8> kConditionXids{48, 63, 64, 79, 119, 120, 123, 140};

}  // namespace

bool is_gke_condition(unsigned xid) {
  return std::find(kConditionXids.begin(), kConditionXids.end(), xid) != kConditionXids.end();
}

std::string gke_event(const std::string& node, unsigned xid, std::int64_t at_s, unsigned number) {
  return kube::to_json({.kind = "Node",
                        .object = {.uid = node, .name = node},
                        .type = kube::EventType::Warning,
                        .reason = "XIDError",
                        .message = fmt::format("Caught XID error, XID={}", xid),
                        .component = "nvidia-gpu-device-plugin",
                        .at_unix_s = at_s},
                       number);
}

std::string gke_condition(const std::set<unsigned>& xids, const std::string& boot_id,
                          std::int64_t now_s, std::int64_t since_s) {
  std::string reason;
  for (const auto xid : xids)
    reason += fmt::format("{}\"{}\":true", reason.empty() ? "" : ",", xid);
  return fmt::format(
      R"({{"status":{{"conditions":[{{"type":"{}","status":"True","reason":{},"message":{},)"
      R"("lastHeartbeatTime":"{}","lastTransitionTime":"{}"}}]}}}})",
      kGkeCondition, json::quote("{" + reason + "}"), json::quote(boot_id), kube::format_utc(now_s),
      kube::format_utc(since_s));
}

std::string without_gke_condition() {
  return fmt::format(R"({{"status":{{"conditions":[{{"$patch":"delete","type":"{}"}}]}}}})",
                     kGkeCondition);
}

GkeCondition parse_gke_condition(const json::Document& node) {
  GkeCondition found;
  for (const auto condition : node["status"]["conditions"]) {
    if (condition["type"].string() != kGkeCondition) continue;
    if (condition["status"].string() != "True") continue;
    found.boot_id = condition["message"].string().value_or("");
    const auto reason = json::Document::parse(condition["reason"].string().value_or(""));
    if (!reason.ok() || !reason->root().is(json::Kind::Object)) continue;
    for (const auto entry : reason->root()) {
      const auto xid = parse_u64(entry.key());
      if (xid && is_gke_condition(static_cast<unsigned>(*xid)))
        found.xids.insert(static_cast<unsigned>(*xid));
    }
  }
  return found;
}

std::string driver_annotations(const std::string& node, std::string_view version) {
  constexpr std::string_view kPrefix = "cloud.google.com/cuda.driver-version.";
  constexpr std::array<std::string_view, 3> kParts{"major", "minor", "revision"};
  const auto parts = split(version, '.');
  std::string members = fmt::format(R"("{}full":{})", kPrefix, json::quote(version));
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    members += fmt::format(R"(,"{}{}":{})", kPrefix, kParts[i],
                           json::quote(i < parts.size() ? parts[i] : ""));
  }
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":{},"annotations":{{{}}}}}}})",
      json::quote(node), members);
}

}  // namespace gantry::agent
