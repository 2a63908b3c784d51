// SPDX-License-Identifier: Apache-2.0
// A webhook's certificate through its life: made at first start, kept in a Secret so that all
// replicas have the same, renewed in time, and its authority written into the webhook
// configurations. An authority is replaced in two steps: first the bundle has the old and the new,
// and only when every configuration has that does a certificate of the new one come into use.
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
  std::vector<std::string> validating;  // one that does not exist is left for later
  std::chrono::hours authority_life{24 * 3650};
  std::chrono::hours serving_life{24 * 365};
};

// gantry.kube-system.svc, gantry.kube-system.svc.cluster.local, gantry.kube-system, gantry
std::vector<std::string> service_names(const std::string& service, const std::string& name_space,
                                       const std::string& domain = "cluster.local");

struct ServingBundle {
  KeyPair serving;
  std::string bundle;  // PEM of all authorities that callers shall trust
  Status configured;   // why a configuration could not be given the bundle
};

// One look: reads the Secret, makes or renews what is due, patches the configurations. What it
// returns shall be served from now on. Safe to run in several replicas at once: the Secret is
// written with the resourceVersion that was read, and who loses reads again. A Secret without
// "ca.key" is somebody else's (cert-manager's): it is served as long as it is good, never written.
Result<ServingBundle> rotate_once(kube::Api& api, const RotationOptions& options,
                                  std::int64_t now_unix_s);

// look_after() in a thread: at once, then every `period`, after a failure sooner.
class CertificateRotator {
 public:
  using OnChange =
      std::function<void(const ServingBundle&)>;  // in the keeper's thread, when it differs
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
