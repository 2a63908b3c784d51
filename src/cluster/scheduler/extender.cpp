// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/extender.hpp"

#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "cluster/report/report.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace gantry::scheduler {
namespace {

constexpr std::size_t kMaxReportedNodes = 500;  // in one report
constexpr std::size_t kRefusals = static_cast<std::size_t>(placement::Refusal::Quota) + 1;

InvalidRequest invalid_request_of(std::string_view pod, std::string sentence) {
  InvalidRequest bad{.sentence = std::move(sentence)};
  const auto parsed = json::Document::parse(std::string(pod));
  if (!parsed.ok()) return bad;
  const auto metadata = (*parsed)["metadata"];
  bad.pod.uid = metadata["uid"].string().value_or("");
  bad.pod.name_space = metadata["namespace"].string().value_or("");
  bad.pod.name = metadata["name"].string().value_or("");
  return bad;
}

// Every node has one of a few reasons, so each sentence is written once.
class ReasonCache {
 public:
  explicit ReasonCache(const podspec::PodRequest& ask) : ask_(ask) {}
  const std::string* of(const placement::Fit& fit) {
    const auto kind = (fit.marked_unhealthy ? 1U : 0U) + (fit.unit_mib == 1 ? 2U : 0U);
    auto& text = texts_[static_cast<std::size_t>(fit.refusal) * kKinds + kind];
    if (text.empty()) text = json::quote(placement::describe(fit, ask_));
    return &text;
  }

 private:
  const podspec::PodRequest& ask_;
  static constexpr std::size_t kKinds = 4;  // GiB or MiB, with cards marked unhealthy or without
  std::array<std::string, kRefusals * kKinds> texts_;
};

}  // namespace

http::Response json_response(std::string body, int status) {
  return {
      .status = status, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

http::Response text_response(std::string body, int status) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = std::move(body)};
}

Result<std::optional<podspec::PodRequest>> parse_pod_request(std::string_view pod) {
  if (pod.empty()) return Error(Errc::Corrupt, "the request has no Pod");
  GANTRY_TRY(const auto parsed,
             json::Document::parse(std::string(pod)).in("reading the request's Pod"));
  return podspec::parse_request(parsed.root());
}

Extender::Extender(const ClusterCache& cache, SchedulerCounters& counters, Callbacks callbacks)
    : cache_(cache), counters_(counters), callbacks_(std::move(callbacks)) {}

std::string Extender::not_ready() const {
  return callbacks_.not_ready ? callbacks_.not_ready() : std::string();
}

http::Response Extender::filter(std::string_view body) {
  bool full = false;
  return filter(body, full);
}

http::Response Extender::filter(std::string_view body, bool& full) {
  const Stopwatch watch(counters_.filter);
  auto answer = filtered(body, full);
  if (answer.ok()) return json_response(*std::move(answer));
  counters_.filter.failed();
  return json_response(write_filter_error(answer.error().text()));
}

Result<std::string> Extender::filtered(std::string_view body, bool& full) {
  if (auto why = not_ready(); !why.empty()) return Error(Errc::Busy, std::move(why));
  const auto asked = std::make_shared<CachedFilter>();
  asked->body = body;
  GANTRY_TRY(asked->args, read_args(asked->body));
  if (!asked->args.has_names && !asked->args.has_nodes)
    return Error(Errc::Invalid, "the request names no nodes: NodeNames and Nodes are both null");
  auto ask = parse_pod_request(asked->args.pod);
  if (!ask.ok()) {
    if (ask.error().code() != Errc::Invalid) return std::move(ask).error();
    if (callbacks_.invalid_request)
      callbacks_.invalid_request(invalid_request_of(asked->args.pod, ask.error().text()));
    return refuse_all(asked->args, ask.error().text());
  }
  asked->ask = *std::move(ask);
  auto answer = answer_of(*asked);
  full = report_unschedulable(*asked);
  const std::lock_guard hold(mutex_);
  last_ = asked;
  return answer;
}

// True if the pod fits on no node, and on some node only other pods block it.
bool Extender::report_unschedulable(const CachedFilter& asked) const {
  if (!asked.ask || asked.ask->pod.uid.empty() || !callbacks_.full) return false;
  UnschedulablePod full;
  for (std::size_t i = 0; i < asked.fits.size(); ++i) {
    const auto refusal = asked.fits[i].refusal;
    if (refusal == placement::Refusal::None) return false;
    if (placement::resolvable(refusal) && full.nodes.size() < kMaxReportedNodes)
      full.nodes.emplace_back(asked.args.names[i]);
  }
  if (full.nodes.empty()) return false;
  full.ask = *asked.ask;
  callbacks_.full(std::move(full));
  return true;
}

std::string Extender::refuse_all(const ExtenderArgs& args, std::string_view sentence) const {
  const auto reason = json::quote(sentence);
  return write_filter(
      args, {std::vector<ExtenderFilterResult::Verdict>(args.names.size(), {&reason, false})});
}

std::string Extender::answer_of(CachedFilter& asked) const {
  const auto& names = asked.args.names;
  ExtenderFilterResult answer{std::vector<ExtenderFilterResult::Verdict>(names.size())};
  if (!asked.ask) return write_filter(asked.args, answer);  // asks for no GPU: any node fits
  asked.generation = cache_.fit(*asked.ask, names, asked.fits);
  ReasonCache sentences(*asked.ask);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto refusal = asked.fits[i].refusal;
    if (refusal == placement::Refusal::None) continue;
    answer.verdicts[i] = {.reason = sentences.of(asked.fits[i]),
                          .resolvable = placement::resolvable(refusal)};
  }
  std::string soon;
  if (const auto nomination = cache_.nomination(asked.ask->pod.uid)) {
    soon = json::quote("pods on its GPUs are ending to make room for this one");
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == nomination->node && answer.verdicts[i].reason != nullptr)
        answer.verdicts[i].reason = &soon;
    }
  }
  std::string unsettled;
  if (const auto node = cache_.node_of_unknown_binding(asked.ask->pod.uid)) {
    unsettled = json::quote(
        fmt::format("a Binding to node {} was sent, and its result is not known yet", *node));
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] != *node) {
        answer.verdicts[i] = {.reason = &unsettled, .resolvable = true};
      } else {
        answer.verdicts[i] = {};
      }
    }
  }
  return write_filter(asked.args, answer);
}

// kube-scheduler asks about the remaining nodes, in the order in which the filter returned them.
bool Extender::remembered(const ExtenderArgs& args, std::vector<placement::Fit>& fits) const {
  std::shared_ptr<const CachedFilter> last;
  {
    const std::lock_guard hold(mutex_);
    last = last_;
  }
  if (!last || last->generation != cache_.generation() || last->args.pod != args.pod) return false;
  fits.clear();
  fits.reserve(args.names.size());
  std::size_t at = 0;
  const auto& names = last->args.names;
  for (const auto name : args.names) {
    while (at < names.size() && names[at] != name) ++at;
    if (at == names.size()) return false;
    fits.push_back(last->fits[at++]);
  }
  return true;
}

http::Response Extender::prioritize(std::string_view body) {
  const Stopwatch watch(counters_.prioritize);
  const auto refused = [this](const std::string& why, int status) {
    counters_.prioritize.failed();
    return text_response(why + "\n", status);
  };
  if (const auto why = not_ready(); !why.empty()) return refused(why, 503);
  const auto args = read_args(body);
  if (!args.ok()) return refused(args.error().text(), 400);
  std::vector<placement::Fit> fits;
  if (!remembered(*args, fits)) {
    const auto ask = parse_pod_request(args->pod);
    if (!ask.ok()) return refused(ask.error().text(), 400);
    if (*ask) {
      cache_.fit(**ask, args->names, fits);
    } else {
      fits.assign(args->names.size(), {});
    }
  }
  std::string out;  // by hand, as in extender_wire_write.cpp
  out.reserve(args->names.size() * 56 + 2);
  out += '[';
  for (std::size_t i = 0; i < args->names.size(); ++i) {
    out += i == 0 ? R"({"Host":)" : R"(,{"Host":)";
    append_quoted(out, args->names[i]);
    out += R"(,"Score":)";
    out += fmt::format_int(fits[i].score).c_str();
    out += '}';
  }
  out += ']';
  return json_response(std::move(out));
}

http::Response Extender::preempt(std::string_view body) {
  const Stopwatch watch(counters_.preempt);
  const auto refused = [this](const std::string& why, int status) {
    counters_.preempt.failed();
    return text_response(why + "\n", status);
  };
  if (const auto why = not_ready(); !why.empty()) return refused(why, 503);
  auto args = read_preempt_args(body);
  if (!args.ok()) return refused(args.error().text(), 400);
  const auto ask = parse_pod_request(args->pod);
  if (!ask.ok() && ask.error().code() != Errc::Invalid) return refused(ask.error().text(), 400);
  if (!ask.ok()) return json_response(write_preempt({}));  // no eviction makes the request valid
  if (!*ask) return json_response(write_preempt(args->nodes));
  std::map<std::string, NodeVictims> helped;
  for (auto& [node, victims] : args->nodes) {
    auto all = cache_.victims(**ask, node, victims.uids);
    if (all.ok())
      helped[node] = {.uids = *std::move(all), .pdb_violations = victims.pdb_violations};
  }
  return json_response(write_preempt(helped));
}

namespace {

// An empty list before the nodes are read would look like a cluster without nodes.
http::Response not_inspected(std::string_view why, int status) {
  json::Writer out;
  out.object([&] {
    out.array("nodes", [] {});
    out.member("error", why);
  });
  return json_response(std::move(out).text(), status);
}

}  // namespace

http::Response Extender::inspect() const {
  if (const auto why = not_ready(); !why.empty()) return not_inspected(why, 503);
  std::vector<placement::NodeView> views;
  for (const auto& name : cache_.nodes()) {
    auto view = cache_.view(name);
    if (!view.cards.empty()) views.push_back(std::move(view));
  }
  return json_response(report::to_json(views));
}

http::Response Extender::inspect(std::string_view node) const {
  if (const auto why = not_ready(); !why.empty()) return not_inspected(why, 503);
  const auto view = cache_.view(node);
  if (!view.cards.empty()) return json_response(report::to_json({&view, 1}));
  return not_inspected(fmt::format("node {} has no shared GPUs or does not exist; kubectl get "
                                   "nodes -l gpushare=true lists the nodes that share GPUs",
                                   node),
                       404);
}

}  // namespace gantry::scheduler
