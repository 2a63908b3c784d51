// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/explain_pod.hpp"

#include "base/core/printable.hpp"
#include "base/json/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace gantry::scheduler {
namespace {

void write_reason(json::Writer& out, const NodeReason& reason) {
  out.object([&] {
    out.member("node", reason.node);
    out.member("fits", reason.fits);
    if (reason.fits) {
      out.member("score", reason.score);
    } else {
      out.member("preemptible", reason.resolvable);
      out.member("reason", reason.sentence);
    }
  });
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
  json::Writer out;
  out.object([&] {
    out.member("namespace", reasons.pod.name_space);
    out.member("name", reasons.pod.name);
    out.member("uid", reasons.pod.uid);
    out.member("node", reasons.on_node);
    out.member("problem", reasons.problem);
    out.member("room", reasons.room);
    out.array("nodes", reasons.nodes, [&](const auto& reason) { write_reason(out, reason); });
  });
  return std::move(out).text();
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
