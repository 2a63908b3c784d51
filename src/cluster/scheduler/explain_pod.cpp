// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/explain_pod.hpp"

#include "base/core/printable.hpp"
#include "base/json/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace gantry::scheduler {
namespace {

std::string reason_json(const NodeReason& reason) {
  if (reason.fits) {
    return fmt::format(R"({{"node":{},"fits":true,"score":{}}})", json::quote(reason.node),
                       reason.score);
  }
  return fmt::format(R"({{"node":{},"fits":false,"preemptible":{},"reason":{}}})",
                     json::quote(reason.node), reason.resolvable, json::quote(reason.sentence));
}

}  // namespace

PodReasons explain_pod(const ClusterCache& cache, const podspec::PodRequest& ask) {
  PodReasons reasons{.pod = ask.pod};
  const auto names = cache.nodes();
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::vector<placement::Fit> fits;
  cache.fit(ask, views, fits);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto refusal = fits[i].refusal;
    const bool good = refusal == placement::Refusal::None;
    reasons.nodes.push_back({.node = names[i],
                             .fits = good,
                             .score = fits[i].score,
                             .resolvable = placement::resolvable(refusal),
                             .sentence = good ? "" : placement::describe(fits[i], ask, names[i])});
  }
  std::stable_sort(reasons.nodes.begin(), reasons.nodes.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.fits, a.score, a.resolvable) > std::tuple(b.fits, b.score, b.resolvable);
  });
  return reasons;
}

std::string to_json(const PodReasons& reasons) {
  std::string nodes;
  for (const auto& reason : reasons.nodes)
    nodes += fmt::format("{}{}", nodes.empty() ? "" : ",", reason_json(reason));
  return fmt::format(
      R"({{"namespace":{},"name":{},"uid":{},"node":{},"problem":{},"room":{},"nodes":[{}]}})",
      json::quote(reasons.pod.name_space), json::quote(reasons.pod.name),
      json::quote(reasons.pod.uid), json::quote(reasons.on_node), json::quote(reasons.problem),
      json::quote(reasons.room), nodes);
}

std::string to_text(const PodReasons& reasons) {
  auto text =
      fmt::format("{}/{}: ", printable(reasons.pod.name_space), printable(reasons.pod.name));
  if (!reasons.problem.empty()) return text + printable(reasons.problem) + "\n";
  if (!reasons.on_node.empty())
    return text + fmt::format("is on node {}\n", printable(reasons.on_node));
  const auto fit =
      std::count_if(reasons.nodes.begin(), reasons.nodes.end(), [](auto& r) { return r.fits; });
  text += fmt::format("fits on {} of {} nodes\n", fit, reasons.nodes.size());
  if (!reasons.room.empty()) text += fmt::format("room: {}\n", printable(reasons.room));
  for (const auto& reason : reasons.nodes) {
    if (reason.fits) {
      text += fmt::format("{}: fits, score {}\n", printable(reason.node), reason.score);
    } else {
      text += fmt::format("{}: {}{}\n", printable(reason.node), printable(reason.sentence),
                          reason.resolvable ? "" : " (preemption does not help)");
    }
  }
  return text;
}

}  // namespace gantry::scheduler
