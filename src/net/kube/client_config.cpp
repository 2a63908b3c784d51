// SPDX-License-Identifier: Apache-2.0
#include "net/kube/client_config.hpp"

#include "base/core/text.hpp"
#include "base/sys/host.hpp"
#include "net/kube/kubeconfig_internal.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

namespace gantry::kube {
namespace {

constexpr std::size_t kFileLimit = std::size_t{4} << 20;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A person's own kubeconfig comes first, then the administrator's. An agent uses only the node's,
// never the administrator's.
std::vector<std::string> kubeconfig_candidates(Caller who) {
  std::vector<std::string> found;
  if (who == Caller::Person) {
    if (const auto home = environment("HOME"); !home.empty())
      found.push_back(home + "/.kube/config");
    for (const auto* path :
         {"/etc/kubernetes/admin.conf", "/etc/rancher/k3s/k3s.yaml", "/etc/rancher/rke2/rke2.yaml"})
      found.emplace_back(path);
  }
  for (const auto* path : {"/etc/kubernetes/kubelet.conf", "/var/lib/kubelet/kubeconfig",
                           "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
                           "/var/lib/rancher/rke2/agent/kubelet.kubeconfig"})
    found.emplace_back(path);
  return found;
}

// KUBECONFIG is a list: returns the first file that exists.
std::string first_of(const std::string& list) {
  std::string first;
  for (const auto path : split(list, ':')) {
    if (path.empty()) continue;
    if (first.empty()) first = path;
    if (std::string found(path); ::access(found.c_str(), F_OK) == 0) return found;
  }
  return first;
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  GANTRY_TRY(const auto machine, sys::Host::at("/"));
  return machine.read(path, kFileLimit);
}

Result<ClientConfig> in_cluster_config(const std::string& host, const std::string& port,
                                       const std::string& directory) {
  if (host.empty() || port.empty())
    return Error(Errc::NotFound, "this is not a pod: KUBERNETES_SERVICE_HOST is not set");
  ClientConfig access;
  const auto shown = host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
  GANTRY_TRY(access.server, http::parse_url(fmt::format("https://{}:{}", shown, port)));
  GANTRY_TRY(access.server.endpoint.tls.authorities, read_file(directory + "/ca.crt"));
  access.token_file = directory + "/token";
  GANTRY_TRY(access.token, read_file(access.token_file));
  access.token = std::string(trim(access.token));
  if (auto name = read_file(directory + "/namespace"); name.ok())
    access.name_space = std::string(trim(*name));
  access.from = "the pod's service account";
  return access;
}

Result<ClientConfig> find_client_config(const std::string& kubeconfig_flag, Caller who) {
  if (!kubeconfig_flag.empty()) return load_kubeconfig(kubeconfig_flag);
  if (const auto named = environment("KUBECONFIG"); !named.empty())
    return load_kubeconfig(first_of(named));
  auto pod = in_cluster_config(environment("KUBERNETES_SERVICE_HOST"),
                               environment("KUBERNETES_SERVICE_PORT"));
  if (pod.ok() || pod.error().code() != Errc::NotFound) return pod;
  for (const auto& path : kubeconfig_candidates(who)) {
    if (::access(path.c_str(), R_OK) == 0) return load_kubeconfig(path);
  }
  return Error(Errc::NotFound,
               fmt::format("found no API server: this is not a pod, and there is no kubeconfig in "
                           "{} places of kubeadm, K3s and RKE2; give one with --kubeconfig FILE",
                           who == Caller::Node ? "the kubelet's" : "~/.kube/config or in the"));
}

}  // namespace gantry::kube
