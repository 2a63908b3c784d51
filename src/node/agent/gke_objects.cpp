// SPDX-License-Identifier: Apache-2.0
#include "node/agent/gke_objects.hpp"

#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "node/agent/node_objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

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
  json::Writer reason;
  reason.object([&] {
    for (const auto xid : xids) reason.member(fmt::to_string(xid), true);
  });
  return to_patch({.type = kGkeCondition,
                   .status = "True",
                   .reason = reason.text(),
                   .message = boot_id,
                   .seen_s = now_s,
                   .changed_s = since_s});
}

std::string without_gke_condition() {
  json::Writer out;
  out.object([&] {
    out.object("status", [&] {
      out.array("conditions", [&] {
        out.object([&] {
          out.member("$patch", "delete");
          out.member("type", kGkeCondition);
        });
      });
    });
  });
  return std::move(out).text();
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
  const std::string prefix = "cloud.google.com/cuda.driver-version.";
  constexpr std::array<std::string_view, 3> kParts{"major", "minor", "revision"};
  const auto parts = split(version, '.');
  json::Writer out;
  out.object([&] {
    out.member("apiVersion", "v1");
    out.member("kind", "Node");
    out.object("metadata", [&] {
      out.member("name", node);
      out.object("annotations", [&] {
        out.member(prefix + "full", version);
        for (std::size_t i = 0; i < kParts.size(); ++i)
          out.member(fmt::format("{}{}", prefix, kParts[i]), i < parts.size() ? parts[i] : "");
      });
    });
  });
  return std::move(out).text();
}

}  // namespace gantry::agent
