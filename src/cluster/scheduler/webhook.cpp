// SPDX-License-Identifier: Apache-2.0
// The admission webhook, over HTTPS with a certificate that looks after itself. The extender's
// verbs are there, too: HAMi's configurations ask for them over HTTPS.
#include "cluster/scheduler/work_internal.hpp"

#include <fmt/format.h>

namespace gantry::scheduler {

http::Response Scheduler::Work::admit_pod(const http::Request& request) {
  const Stopwatch watch(counters_.admit);
  auto answer = webhook::review(request.body, options_.webhook->policy);
  if (answer.ok()) return json_response(*std::move(answer));
  counters_.admit.failed();
  return text_response(answer.error().text() + "\n", 400);
}

void Scheduler::Work::keep_certificate() {
  if (!options_.webhook) return;
  const auto& webhook = *options_.webhook;
  if (!webhook.given.certificates.empty()) {
    serve_securely(webhook.given);
    return;
  }
  certificate_ = std::make_unique<webhook::Keeper>(
      options_.access, webhook.certificate,
      [this](const webhook::Served& served) {
        serve_securely({.certificates = served.serving.certificate, .key = served.serving.key});
      },
      [this](const Error& error) { voice_.warning("webhook", error.text()); });
}

// At first, and with every new certificate.
void Scheduler::Work::serve_securely(const http::ServerIdentity& identity) {
  const std::lock_guard hold(secure_mutex_);
  if (secure_) {
    if (const auto replaced = secure_->replace(identity); !replaced.ok())
      voice_.warning("webhook", replaced.error().text());
    return;
  }
  auto pages = routes();
  const auto admit_here = [this](const http::Request& request) { return admit_pod(request); };
  pages.push_back({"POST", "/mutate", admit_here});
  pages.push_back({"POST", "/webhook", admit_here});  // HAMi's
  auto started = http::Service::start({.address = options_.webhook->address,
                                       .identity = &identity,
                                       .threads = options_.threads,
                                       .body_limit = kBodyLimit,
                                       .memory_limit = kMemoryLimit},
                                      std::move(pages));
  if (!started.ok()) {
    voice_.warning("webhook", started.error().text());
    return;
  }
  secure_ = *std::move(started);
  voice_.info("webhook", fmt::format("listening on port {}", secure_->port()));
}

}  // namespace gantry::scheduler
