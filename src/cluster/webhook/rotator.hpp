// SPDX-License-Identifier: Apache-2.0
// Manages the webhook's certificate: creates it at the first start, keeps it in a Secret so that
// all replicas have the same, renews it in time, and writes its authority into the webhook
// configurations. An authority is replaced in two steps: first the bundle contains the old and the
// new one, and only when every configuration has that bundle, a certificate of the new one is used.
#pragma once

#include "base/core/result.hpp"
#include "cluster/webhook/certificate.hpp"
#include "net/kube/api.hpp"
#include "net/kube/client_config.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gantry::webhook {

struct RotationOptions {
  std::string name_space;
  std::string secret = "gantry-scheduler-tls";
  std::vector<std::string> names;       // of the Service: "gantry-scheduler.kube-system.svc", ...
  std::vector<std::string> mutating;    // configurations whose webhooks get the bundle
  std::vector<std::string> validating;  // a configuration that does not exist is tried again later
  std::chrono::hours authority_life{24 * 3650};
  std::chrono::hours serving_life{24 * 365};
};

// gantry.kube-system.svc, gantry.kube-system.svc.cluster.local, gantry.kube-system, gantry
std::vector<std::string> service_names(const std::string& service, const std::string& name_space,
                                       const std::string& domain = "cluster.local");

struct ServingBundle {
  KeyPair serving;
  std::string bundle;  // PEM of all authorities that callers must trust
  Status configured;   // why the bundle could not be written to a configuration
};

// Checks once: reads the Secret, creates or renews what is due, and patches the configurations.
// Serve the result from now on. Safe in several replicas at once: the Secret is written with the
// resourceVersion that was read, and the replica that loses reads again. A Secret without "ca.key"
// belongs to another program (cert-manager): it is served while it is valid, and never written.
Result<ServingBundle> rotate_once(kube::Api& api, const RotationOptions& options,
                                  std::int64_t now_unix_s);

// Runs rotate_once() in a thread: at once, then every `period`, and sooner after a failure.
class CertificateRotator {
 public:
  using OnChange = std::function<void(const ServingBundle&)>;  // in its thread, on a change
  using OnError = std::function<void(const Error&)>;
  CertificateRotator(kube::ClientConfig access, RotationOptions options, OnChange changed,
                     OnError trouble = {},
                     std::chrono::milliseconds period = std::chrono::minutes(1));
  ~CertificateRotator();
  CertificateRotator(const CertificateRotator&) = delete;
  CertificateRotator& operator=(const CertificateRotator&) = delete;

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace gantry::webhook
