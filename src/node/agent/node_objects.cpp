// SPDX-License-Identifier: Apache-2.0
#include "node/agent/node_objects.hpp"

#include "base/json/document.hpp"
#include "gpu/health/health_message.hpp"

#include <fmt/format.h>

namespace gantry::agent {

std::string node_with_labels(const std::string& node, const labels::Labels& labels) {
  std::string members;
  for (const auto& [key, value] : labels)
    members +=
        fmt::format("{}{}:{}", members.empty() ? "" : ",", json::quote(key), json::quote(value));
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":{},"labels":{{{}}}}}}})",
      json::quote(node), members);
}

std::string describe(const health::HealthNotice& notice) {
  const auto& which = notice.mig.text.empty() ? notice.gpu.text : notice.mig.text;
  const auto text = which.empty() ? notice.text : fmt::format("{}: {}", which, notice.text);
  return text + health::format_remedy(notice.remedy);
}

std::string node_event(const std::string& node, const health::HealthNotice& notice,
                       unsigned number) {
  return kube::to_json(
      {.kind = "Node",
       .name = node,
       .uid = node,
       .type = notice.critical ? kube::EventType::Warning : kube::EventType::Normal,
       .reason = notice.xid ? "XIDError" : "GPUHealth",
       .message = describe(notice),
       .host = node,
       .at_unix_s = notice.at_unix_s},
      number);
}

std::string health_condition(const std::vector<model::DeviceHealth>& health, std::int64_t now_s,
                             std::int64_t changed_s) {
  const auto bad = health::to_message(health);
  return fmt::format(
      R"({{"status":{{"conditions":[{{"type":"{}","status":"{}","reason":"{}","message":{},)"
      R"("lastHeartbeatTime":"{}","lastTransitionTime":"{}"}}]}}}})",
      kCondition, bad.empty() ? "True" : "False", bad.empty() ? "AllGPUsUsable" : "GPUsUnusable",
      json::quote(bad.empty() ? "all GPUs of this node are healthy" : kube::truncate_message(bad)),
      kube::format_utc(now_s), kube::format_utc(changed_s));
}

}  // namespace gantry::agent
