// SPDX-License-Identifier: Apache-2.0
#include "node/agent/node_objects.hpp"

#include "base/json/writer.hpp"
#include "gpu/health/health_message.hpp"

#include <fmt/format.h>

#include <utility>

namespace gantry::agent {

std::string node_with_labels(const std::string& node, const labels::Labels& labels) {
  json::Writer out;
  out.object([&] {
    out.member("apiVersion", "v1");
    out.member("kind", "Node");
    out.object("metadata", [&] {
      out.member("name", node);
      out.object("labels", labels);
    });
  });
  return std::move(out).text();
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
       .object = {.uid = node, .name = node},
       .type = notice.critical ? kube::EventType::Warning : kube::EventType::Normal,
       .reason = notice.xid ? "XIDError" : "GPUHealth",
       .message = describe(notice),
       .host = node,
       .at_unix_s = notice.at_unix_s},
      number);
}

std::string to_patch(const NodeCondition& condition) {
  json::Writer out;
  out.object([&] {
    out.object("status", [&] {
      out.array("conditions", [&] {
        out.object([&] {
          out.member("type", condition.type);
          out.member("status", condition.status);
          out.member("reason", condition.reason);
          out.member("message", condition.message);
          out.member("lastHeartbeatTime", kube::format_utc(condition.seen_s));
          out.member("lastTransitionTime", kube::format_utc(condition.changed_s));
        });
      });
    });
  });
  return std::move(out).text();
}

std::string health_condition(const std::vector<model::DeviceHealth>& health, std::int64_t now_s,
                             std::int64_t changed_s) {
  const auto bad = health::to_message(health);
  return to_patch(
      {.type = kCondition,
       .status = bad.empty() ? "True" : "False",
       .reason = bad.empty() ? "AllGPUsUsable" : "GPUsUnusable",
       .message = bad.empty() ? "all GPUs of this node are healthy" : kube::truncate_message(bad),
       .seen_s = now_s,
       .changed_s = changed_s});
}

}  // namespace gantry::agent
