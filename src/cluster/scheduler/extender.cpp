// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/extender.hpp"

#include "base/json/document.hpp"
#include "cluster/report/show.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace gantry::scheduler {
namespace {

constexpr std::size_t kMostFullNodes = 500;  // that are told of
constexpr std::size_t kRefusals = static_cast<std::size_t>(placement::Refusal::Quota) + 1;

BadAsk bad_ask_of(std::string_view pod, std::string sentence) {
  BadAsk bad{.sentence = std::move(sentence)};
  const auto parsed = json::Document::parse(std::string(pod));
  if (!parsed.ok()) return bad;
  const auto metadata = (*parsed)["metadata"];
  bad.uid = metadata["uid"].string().value_or("");
  bad.name_space = metadata["namespace"].string().value_or("");
  bad.name = metadata["name"].string().value_or("");
  return bad;
}

// Every node has one of a few reasons: each is written once.
class Sentences {
 public:
  explicit Sentences(const podspec::PodAsk& ask) : ask_(ask) {}
  const std::string* of(const placement::Fit& fit) {
    const auto kind = (fit.barred ? 1U : 0U) + (fit.unit_mib == 1 ? 2U : 0U);
    auto& text = texts_[static_cast<std::size_t>(fit.refusal) * kKinds + kind];
    if (text.empty()) text = json::quoted(placement::sentence(fit, ask_));
    return &text;
  }

 private:
  const podspec::PodAsk& ask_;
  static constexpr std::size_t kKinds = 4;  // GiB or MiB, with barred cards or without
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

Result<std::optional<podspec::PodAsk>> read_ask(std::string_view pod) {
  if (pod.empty()) return Error(Errc::Corrupt, "the request has no Pod");
  GANTRY_TRY(const auto parsed,
             json::Document::parse(std::string(pod)).in("reading the request's Pod"));
  return podspec::ask_of(parsed.root());
}

Extender::Extender(const Book& book, Counters& counters, Ears ears)
    : book_(book), counters_(counters), ears_(std::move(ears)) {}

std::string Extender::not_ready() const {
  return ears_.not_ready ? ears_.not_ready() : std::string();
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
  const auto asked = std::make_shared<Asked>();
  asked->body = body;
  GANTRY_TRY(asked->args, read_args(asked->body));
  if (!asked->args.has_names && !asked->args.has_nodes)
    return Error(Errc::Invalid, "the request names no nodes: NodeNames and Nodes are both null");
  auto ask = read_ask(asked->args.pod);
  if (!ask.ok()) {
    if (ask.error().code() != Errc::Invalid) return std::move(ask).error();
    if (ears_.bad_ask) ears_.bad_ask(bad_ask_of(asked->args.pod, ask.error().text()));
    return refuse_all(asked->args, ask.error().text());
  }
  asked->ask = *std::move(ask);
  auto answer = answer_of(*asked);
  full = tell_full(*asked);
  const std::lock_guard hold(mutex_);
  last_ = asked;
  return answer;
}

// Somewhere nothing but others stands in its way, and it fits nowhere.
bool Extender::tell_full(const Asked& asked) const {
  if (!asked.ask || asked.ask->uid.empty() || !ears_.full) return false;
  FullAsk full;
  for (std::size_t i = 0; i < asked.fits.size(); ++i) {
    const auto refusal = asked.fits[i].refusal;
    if (refusal == placement::Refusal::None) return false;
    if (placement::resolvable(refusal) && full.nodes.size() < kMostFullNodes)
      full.nodes.emplace_back(asked.args.names[i]);
  }
  if (full.nodes.empty()) return false;
  full.ask = *asked.ask;
  ears_.full(std::move(full));
  return true;
}

std::string Extender::refuse_all(const Args& args, std::string_view sentence) const {
  const auto reason = json::quoted(sentence);
  return write_filter(args,
                      {std::vector<FilterAnswer::Verdict>(args.names.size(), {&reason, false})});
}

std::string Extender::answer_of(Asked& asked) const {
  const auto& names = asked.args.names;
  FilterAnswer answer{std::vector<FilterAnswer::Verdict>(names.size())};
  if (!asked.ask) return write_filter(asked.args, answer);  // asks for no GPU: any node will do
  asked.generation = book_.fit(*asked.ask, names, asked.fits);
  Sentences sentences(*asked.ask);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto refusal = asked.fits[i].refusal;
    if (refusal == placement::Refusal::None) continue;
    answer.verdicts[i] = {.reason = sentences.of(asked.fits[i]),
                          .resolvable = placement::resolvable(refusal)};
  }
  std::string soon;
  if (const auto kept = book_.kept(asked.ask->uid)) {
    soon = json::quoted("pods on its GPUs are ending to make room for this one");
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == kept->node && answer.verdicts[i].reason != nullptr)
        answer.verdicts[i].reason = &soon;
    }
  }
  std::string unsettled;
  if (const auto node = book_.unsettled_node(asked.ask->uid)) {
    unsettled = json::quoted(fmt::format(
        "a Binding to node {} has been sent, and whether it was taken is not known yet", *node));
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

// kube-scheduler asks about the nodes that were left, in the order in which they were given.
bool Extender::remembered(const Args& args, std::vector<placement::Fit>& fits) const {
  std::shared_ptr<const Asked> last;
  {
    const std::lock_guard hold(mutex_);
    last = last_;
  }
  if (!last || last->generation != book_.generation() || last->args.pod != args.pod) return false;
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
    const auto ask = read_ask(args->pod);
    if (!ask.ok()) return refused(ask.error().text(), 400);
    if (*ask) {
      book_.fit(**ask, args->names, fits);
    } else {
      fits.assign(args->names.size(), {});
    }
  }
  std::string out;
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
  const auto ask = read_ask(args->pod);
  if (!ask.ok() && ask.error().code() != Errc::Invalid) return refused(ask.error().text(), 400);
  if (!ask.ok()) return json_response(write_preempt({}));  // no pod's end makes it right
  if (!*ask) return json_response(write_preempt(args->nodes));
  std::map<std::string, Victims> helped;
  for (auto& [node, victims] : args->nodes) {
    auto all = book_.victims(**ask, node, victims.uids);
    if (all.ok())
      helped[node] = {.uids = *std::move(all), .pdb_violations = victims.pdb_violations};
  }
  return json_response(write_preempt(helped));
}

namespace {

// No nodes where they were not read yet would be taken for a cluster without any.
http::Response not_inspected(std::string_view why, int status) {
  return json_response(fmt::format(R"({{"nodes":[],"error":{}}})", json::quoted(why)), status);
}

}  // namespace

http::Response Extender::inspect() const {
  if (const auto why = not_ready(); !why.empty()) return not_inspected(why, 503);
  std::vector<placement::NodeView> views;
  for (const auto& name : book_.nodes()) {
    auto view = book_.view(name);
    if (!view.cards.empty()) views.push_back(std::move(view));
  }
  return json_response(report::to_json(views));
}

http::Response Extender::inspect(std::string_view node) const {
  if (const auto why = not_ready(); !why.empty()) return not_inspected(why, 503);
  const auto view = book_.view(node);
  if (!view.cards.empty()) return json_response(report::to_json({&view, 1}));
  return not_inspected(fmt::format("node {} has no shared GPUs, or there is none of that name: "
                                   "kubectl get nodes -l gpushare=true",
                                   node),
                       404);
}

}  // namespace gantry::scheduler
