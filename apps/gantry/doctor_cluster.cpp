// SPDX-License-Identifier: Apache-2.0
#include "gantry/doctor_cluster.hpp"

#include "net/kube/api.hpp"
#include "net/kube/client_config.hpp"
#include "net/kube/node_name.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace gantry::cli {
namespace {

constexpr std::chrono::seconds kClusterTimeout{3};

bool may_be_asked(const ClusterFlags& flags, const sys::Host& host) {
  if (!flags.kubeconfig.empty() || std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) return true;
  return host.is_live() && host.exists("/var/lib/kubelet/config.yaml");
}

doctor::ClusterView read_cluster(const ClusterFlags& flags) {
  auto access = kube::find_client_config(flags.kubeconfig, kube::Caller::Person);
  if (!access.ok()) return {.error = access.error().text()};
  kube::Api api(*std::move(access), kClusterTimeout);
  const auto node = api.get(kube::node_path(kube::node_name(flags.node)));
  if (!node.ok()) return {.error = node.error().text()};
  const auto classes = api.get("/apis/node.k8s.io/v1/runtimeclasses?limit=500");
  return {
      .node = node->text(), .runtime_classes = classes.ok() ? classes->text() : "", .error = ""};
}

}  // namespace

std::optional<doctor::ClusterView> query_cluster(const ClusterFlags& flags, const sys::Host& host,
                                                 const std::vector<const doctor::Check*>& checks) {
  const bool wanted = std::any_of(checks.begin(), checks.end(), [](const doctor::Check* check) {
    return check->id.starts_with("cluster.");
  });
  if (!wanted || !may_be_asked(flags, host)) return std::nullopt;
  return read_cluster(flags);
}

}  // namespace gantry::cli
