// SPDX-License-Identifier: Apache-2.0
#include "notebook/notebook.hpp"

#include "notebook/page.hpp"

#include <fmt/format.h>

#include <utility>

namespace gantry::workload {
namespace {

constexpr std::chrono::seconds kListMaxAge{5};  // the list of GPUs is reused for this long

http::Response text(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}},
          .body = std::move(body)};
}

// Tells the page's script that this server answered, not a proxy.
http::Response answer_of(const FinishedRun& run) {
  const int status = run.result.hung ? 504 : run.result.status == 0 ? 200 : 500;
  auto response = text(status, run.result.output);
  if (run.result.hung) response.body += "the driver did not answer in time\n";
  response.headers.push_back({"X-Gantry-Run", fmt::to_string(run.number)});
  return response;
}

JobResult not_started(const Error& error) {
  return {.status = 127, .output = error.text() + "\n"};
}

}  // namespace

Notebook::Notebook(sys::Loop& loop, NotebookOptions options)
    : loop_(loop), options_(std::move(options)), jobs_(loop) {
  look();
}

std::vector<http::Route> Notebook::routes() {
  const auto page = [this](std::function<void(const http::Reply&)> make) {
    return [this, make = std::move(make)](const http::Request&, const http::Reply& reply) {
      loop_.post([make, reply] { make(reply); });
    };
  };
  return {
      {"GET", "/", page([this](const http::Reply& reply) { show(reply, true); })},
      {"GET", "/status", page([this](const http::Reply& reply) { show(reply, false); })},
      {"GET", "/run", page([this](const http::Reply& reply) { run(reply); })},
      {"GET", "/healthz", page([](const http::Reply& reply) { reply.send(text(200, "ok\n")); })}};
}

void Notebook::look() {
  if (looking_) return;
  looking_ = true;
  const auto started = jobs_.start(options_.look, options_.deadline,
                                   [this](const JobResult& result) { looked(result); });
  if (!started.ok()) looked(not_started(started.error()));
}

void Notebook::looked(const JobResult& result) {
  const bool well = result.status == 0;
  const bool was_well = gpus_.result.status == 0;  // also before the first look
  if (!well && was_well) {
    options_.log.error("gpu", "no GPU can be used", {{"error", describe_failure(result)}});
  } else if (well && !was_well) {
    options_.log.info("gpu", "the GPUs can be used again", {});
  }
  gpus_ = {.looked = true, .result = result};
  looked_at_ = std::chrono::steady_clock::now();
  looking_ = false;
  for (const auto& viewer : std::exchange(viewers_, {})) viewer.reply.send(shown(viewer.page));
}

void Notebook::show(http::Reply reply, bool page) {
  if (!gpus_.looked) return viewers_.push_back({std::move(reply), page});
  reply.send(shown(page));
  if (std::chrono::steady_clock::now() - looked_at_ > kListMaxAge) look();
}

http::Response Notebook::shown(bool page) const {
  const PageState view{.sight = gpus_, .last = last_, .running = running_, .runs = runs_};
  auto response = text(200, page ? render_page(view) : status_json(view));
  response.headers[0].value = page ? "text/html; charset=utf-8" : "application/json";
  response.headers.push_back({"Content-Security-Policy",
                              "default-src 'none'; style-src 'unsafe-inline'; script-src "
                              "'unsafe-inline'; connect-src 'self'"});
  return response;
}

void Notebook::run(http::Reply reply) {
  listeners_.push_back(std::move(reply));
  if (running_) return;
  ++runs_;
  running_ = true;
  const auto started = jobs_.start(options_.run, options_.deadline,
                                   [this](const JobResult& result) { ran(result); });
  if (!started.ok()) ran(not_started(started.error()));
}

void Notebook::log_run(const FinishedRun& run) const {
  const auto seconds = static_cast<double>(run.result.took.count()) / 1000.0;
  if (run.result.status != 0) {
    options_.log.error("run", "GPU fault: the run failed",
                       {{"run", run.number}, {"error", describe_failure(run.result)}});
  } else if (!run.answered) {
    options_.log.warning("run", "dropped connection: the run passed, but its client has gone",
                         {{"run", run.number}, {"seconds", seconds}});
  } else {
    options_.log.info("run", "the run passed", {{"run", run.number}, {"seconds", seconds}});
  }
}

void Notebook::ran(const JobResult& result) {
  FinishedRun run{.number = runs_, .result = result};
  running_ = false;
  const auto response = answer_of(run);
  for (const auto& listener : std::exchange(listeners_, {}))
    run.answered = listener.send(response) || run.answered;
  log_run(run);
  // The list is older than this run. If they disagree, it must be read again before it is shown.
  if ((gpus_.result.status == 0) != (result.status == 0)) gpus_.looked = false;
  last_ = std::move(run);
  look();  // a fault may have taken the GPU away
}

}  // namespace gantry::workload
