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

Notebook::Notebook(sys::Loop& loop, http::Server& server, NotebookOptions options)
    : options_(std::move(options)), jobs_(loop) {
  using Answer = http::Server::Answer;
  server.page_later("/", [this](Answer answer) { show(std::move(answer), true); });
  server.page_later("/status", [this](Answer answer) { show(std::move(answer), false); });
  server.page_later("/run", [this](Answer answer) { run(std::move(answer)); });
  server.page("/healthz", [] { return text(200, "ok\n"); });
  look();
}

void Notebook::look() {
  if (looking_) return;
  looking_ = true;
  const auto started = jobs_.start(options_.look, options_.deadline,
                                   [this](const JobResult& result) { looked(result); });
  if (!started.ok()) looked(not_started(started.error()));
}

void Notebook::looked(const JobResult& result) {
  gpus_ = {.looked = true, .result = result};
  looked_at_ = std::chrono::steady_clock::now();
  looking_ = false;
  for (const auto& viewer : std::exchange(viewers_, {})) viewer.answer(shown(viewer.page));
}

void Notebook::show(http::Server::Answer answer, bool page) {
  if (!gpus_.looked) return viewers_.push_back({std::move(answer), page});
  answer(shown(page));
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

void Notebook::run(http::Server::Answer answer) {
  listeners_.push_back(std::move(answer));
  if (running_) return;
  ++runs_;
  running_ = true;
  const auto started = jobs_.start(options_.run, options_.deadline,
                                   [this](const JobResult& result) { ran(result); });
  if (!started.ok()) ran(not_started(started.error()));
}

void Notebook::ran(const JobResult& result) {
  FinishedRun run{.number = runs_, .result = result};
  running_ = false;
  const auto response = answer_of(run);
  for (const auto& listener : std::exchange(listeners_, {}))
    run.answered = listener(response) || run.answered;
  last_ = std::move(run);
  look();  // a fault may have taken the GPU away
}

}  // namespace gantry::workload
