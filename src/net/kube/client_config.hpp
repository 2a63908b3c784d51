// SPDX-License-Identifier: Apache-2.0
// Where the API server is and how to be let in: a pod's service account, or a kubeconfig.
#pragma once

#include "base/core/result.hpp"
#include "net/http/client.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::kube {

struct ClientConfig {
  http::Url server;
  std::string token;       // "" = none
  std::string token_file;  // read anew before each request: service account tokens are rotated
  std::string user;        // basic authentication is not spoken; this is for messages
  std::string name_space = "default";
  std::string from;  // "/root/.kube/config", "the pod's service account"
};

// What a pod has: KUBERNETES_SERVICE_HOST and _PORT, and the directory that the kubelet mounts.
// NotFound outside a pod.
inline constexpr std::string_view kServiceAccountDirectory =
    "/var/run/secrets/kubernetes.io/serviceaccount";
Result<ClientConfig> in_cluster_config(
    const std::string& host, const std::string& port,
    const std::string& directory = std::string(kServiceAccountDirectory));

// The current context of a kubeconfig, or the named one. Files in it are relative to its own
// directory. Credential plug-ins (exec) are refused with what to do instead: nothing of a file is
// executed.
Result<ClientConfig> load_kubeconfig(const std::string& path, std::string_view context = "");

// --kubeconfig, KUBECONFIG, the pod's service account, then by who asks: a person's own
// (~/.kube/config, the administrator's of kubeadm, K3s and RKE2, the kubelet's), or the node's,
// which are the kubelet's alone.
enum class Caller : std::uint8_t { Person, Node };
Result<ClientConfig> find_client_config(const std::string& kubeconfig_flag, Caller who);

}  // namespace gantry::kube
