// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/explain_pod.hpp"
#include "cluster/scheduler/metrics_page.hpp"
#include "cluster/scheduler/scheduler_internal.hpp"

#include <fmt/format.h>

namespace gantry::scheduler {
namespace {

constexpr std::string_view kInspect = "/gpushare-scheduler/inspect/";
constexpr std::string_view kWhy = "/gpushare-scheduler/why/";

bool wants_text(const http::Request& request) {
  const auto* accept = http::find(request.headers, "Accept");
  return request.target.ends_with("?format=text") ||
         (accept != nullptr && accept->starts_with("text/plain"));
}

std::string_view after(std::string_view target, std::string_view prefix) {
  target = target.substr(0, target.find('?'));
  return target.starts_with(prefix) ? target.substr(prefix.size()) : std::string_view();
}

}  // namespace

std::string Scheduler::Impl::not_ready() const {
  const auto missing = feed_ ? feed_->missing() : std::string("everything");
  if (missing.empty()) return {};
  return fmt::format(
      "the scheduler has just started and is reading the state of the cluster (missing: {}); try "
      "again in a few seconds",
      missing);
}

// A pod that is ready gets the API server's admission requests, so the webhook must listen first.
http::Response Scheduler::Impl::ready() {
  auto why = not_ready();
  if (why.empty() && !webhook_listens())
    why = "the webhook does not listen yet: it waits for its certificate; the log says why";
  return why.empty() ? text_response("ok\n") : text_response(why + "\n", 503);
}

std::string Scheduler::Impl::metrics() const {
  const bool leading = options_.election == Election::Off || elector_->leading();
  return page(cache_, counters_,
              {.leading = leading, .ready = not_ready().empty(), .kinds = feed_->kinds()});
}

// NAMESPACE/POD, read from the API server, which has the current state.
Result<PodReasons> Scheduler::Impl::reasons(const std::string& name_space, const std::string& pod) {
  GANTRY_TRY(const auto object,
             apis_.with([&](kube::Api& api) { return api.get(kube::pod_path(name_space, pod)); }));
  PodReasons reasons{.pod = {.uid = object["metadata"]["uid"].string().value_or(""),
                             .name_space = name_space,
                             .name = pod},
                     .on_node = object["spec"]["nodeName"].string().value_or("")};
  const auto ask = podspec::parse_request(object.root());
  if (!ask.ok()) {
    reasons.problem = ask.error().text();
    return reasons;
  }
  if (!*ask) {
    reasons.problem = "asks for no GPU, so any node fits";
    return reasons;
  }
  if (reasons.on_node.empty()) {
    reasons.nodes = explain_pod(cache_, **ask).nodes;
    reasons.room = evictor_.progress(reasons.pod.uid);
  }
  return reasons;
}

http::Response Scheduler::Impl::why(const http::Request& request) {
  const auto names = after(request.target, kWhy);
  const auto slash = names.find('/');
  if (slash == std::string_view::npos)
    return text_response(fmt::format("{}NAMESPACE/POD\n", kWhy), 404);
  if (auto not_yet = not_ready(); !not_yet.empty()) return text_response(not_yet + "\n", 503);
  const auto found =
      reasons(std::string(names.substr(0, slash)), std::string(names.substr(slash + 1)));
  if (!found.ok()) {
    return text_response(found.error().text() + "\n",
                         found.error().code() == Errc::NotFound ? 404 : 502);
  }
  return wants_text(request) ? text_response(to_text(*found)) : json_response(to_json(*found));
}

std::vector<http::Route> Scheduler::Impl::routes() {
  const auto filter = [this](const http::Request& request) { return this->filter(request); };
  const auto prioritize = [this](const http::Request& request) {
    return extender_.prioritize(request.body);
  };
  const auto preempt = [this](const http::Request& request) {
    return extender_.preempt(request.body);
  };
  const auto bind_here = [this](const http::Request& request) { return bind(request); };
  return {
      {"POST", "/gpushare-scheduler/filter", filter},
      {"POST", "/gpushare-scheduler/prioritize", prioritize},
      {"POST", "/gpushare-scheduler/preempt", preempt},
      {"POST", "/gpushare-scheduler/bind", bind_here},
      {"POST", "/filter", filter},  // HAMi's path
      {"POST", "/prioritize", prioritize},
      {"POST", "/preempt", preempt},
      {"POST", "/bind", bind_here},
      {"GET", "/gpushare-scheduler/inspect",
       [this](const http::Request&) { return extender_.inspect(); }},
      {"GET", std::string(kInspect) + "*",
       [this](const http::Request& request) {
         const auto node = after(request.target, kInspect);
         return node.empty() ? extender_.inspect() : extender_.inspect(node);
       }},
      {"GET", std::string(kWhy) + "*",
       [this](const http::Request& request) { return why(request); }},
      {"GET", "/metrics",
       [this](const http::Request&) {
         return http::Response{.headers = {{"Content-Type", std::string(prometheus::kContentType)}},
                               .body = metrics()};
       }},
      {"GET", "/version", [](const http::Request&) { return text_response(GANTRY_VERSION); }},
      {"GET", "/healthz", [](const http::Request&) { return text_response("ok\n"); }},
      {"GET", "/readyz", [this](const http::Request&) { return ready(); }},
  };
}

}  // namespace gantry::scheduler
