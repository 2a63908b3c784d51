// SPDX-License-Identifier: Apache-2.0
#include "node/agent/node_objects.hpp"

#include "base/json/document.hpp"

#include <fmt/format.h>

#include <map>

namespace gantry::agent {
namespace {

// Of a DeviceHealth or a HealthNotice.
template <class About>
const std::string& name_of(const About& about) {
  return about.mig.text.empty() ? about.gpu.text : about.mig.text;
}

// An event that affects several GPUs at once (the driver was unloaded) is described once.
std::string describe_health(const std::vector<model::DeviceHealth>& health) {
  std::map<std::string, std::vector<std::string>> names;  // by problem
  for (const auto& device : health) {
    if (device.usable) continue;
    const auto remedy =
        device.remedy.empty() ? std::string() : fmt::format(" (remedy: {})", device.remedy);
    names[device.cause + remedy].push_back(name_of(device));
  }
  std::string text;
  for (const auto& [wrong, which] : names) {
    text += text.empty() ? "" : "; ";
    text += which.size() > 1 && which.size() == health.size()
                ? fmt::format("all {} GPUs: {}", which.size(), wrong)
                : fmt::format("{}: {}", fmt::join(which, ", "), wrong);
  }
  return text;
}

}  // namespace

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
  const auto& which = name_of(notice);
  auto text = which.empty() ? notice.text : fmt::format("{}: {}", which, notice.text);
  if (!notice.remedy.empty()) text += fmt::format(" (remedy: {})", notice.remedy);
  return text;
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

std::string health_condition(const std::vector<model::DeviceHealth>& health, std::int64_t now_s,
                             std::int64_t changed_s) {
  const auto bad = describe_health(health);
  return fmt::format(
      R"({{"status":{{"conditions":[{{"type":"{}","status":"{}","reason":"{}","message":{},)"
      R"("lastHeartbeatTime":"{}","lastTransitionTime":"{}"}}]}}}})",
      kCondition, bad.empty() ? "True" : "False", bad.empty() ? "AllGPUsUsable" : "GPUsUnusable",
      json::quote(bad.empty() ? "all GPUs of this node are healthy" : kube::truncate_message(bad)),
      kube::format_utc(now_s), kube::format_utc(changed_s));
}

}  // namespace gantry::agent
