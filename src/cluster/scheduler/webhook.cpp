// SPDX-License-Identifier: Apache-2.0
// The admission webhook, over HTTPS with a certificate that is renewed automatically. It also
// serves the extender's verbs, because HAMi's configurations use HTTPS for them.
#include "cluster/scheduler/scheduler_internal.hpp"

namespace gantry::scheduler {

http::Response Scheduler::Impl::admit_pod(const http::Request& request) {
  const Stopwatch watch(counters_.admit);
  auto answer = admission::review(request.body, options_.webhook->policy);
  if (answer.ok()) return json_response(*std::move(answer));
  counters_.admit.failed();
  return text_response(answer.error().text() + "\n", 400);
}

void Scheduler::Impl::start_certificate_rotation() {
  if (!options_.webhook) return;
  const auto& webhook = *options_.webhook;
  if (!webhook.given.certificates.empty()) {
    serve_tls(webhook.given);
    return;
  }
  certificate_ = std::make_unique<webhook::CertificateRotator>(
      options_.access, webhook.certificate,
      [this](const webhook::ServingBundle& served) {
        serve_tls({.certificates = served.serving.certificate, .key = served.serving.key});
      },
      [this](const Error& error) {
        log_.warning("webhook", "cannot renew the certificate", {{"err", error}});
      });
}

bool Scheduler::Impl::webhook_listens() {
  const std::lock_guard hold(tls_mutex_);
  return !options_.webhook || tls_server_ != nullptr;
}

// At the start, and for every new certificate.
void Scheduler::Impl::serve_tls(const http::ServerIdentity& identity) {
  const std::lock_guard hold(tls_mutex_);
  if (tls_server_) {
    if (const auto replaced = tls_server_->replace(identity); !replaced.ok())
      log_.warning("webhook", "cannot use the new certificate", {{"err", replaced.error()}});
    return;
  }
  auto pages = routes();
  const auto admit_here = [this](const http::Request& request) { return admit_pod(request); };
  pages.push_back({"POST", "/mutate", admit_here});
  pages.push_back({"POST", "/webhook", admit_here});  // HAMi's
  auto started = http::Server::start({.address = options_.webhook->address,
                                      .identity = &identity,
                                      .workers = options_.threads,
                                      .body_limit = kBodyLimit,
                                      .memory_limit = kMemoryLimit,
                                      .memory_per_address = kMemoryPerAddress},
                                     std::move(pages));
  if (!started.ok()) {
    log_.warning("webhook", "cannot listen", {{"err", started.error()}});
    return;
  }
  tls_server_ = *std::move(started);
  log_.info("webhook", "listening", {{"port", tls_server_->port()}});
}

}  // namespace gantry::scheduler
