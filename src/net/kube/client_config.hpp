// SPDX-License-Identifier: Apache-2.0
// The address of the API server and the credentials for it: from a pod's service account or a
// kubeconfig.
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
  std::string token_file;  // read again before each request: service account tokens are rotated
  std::string user;        // for messages only; basic authentication is not supported
  std::string name_space = "default";
  std::string from;  // "/root/.kube/config", "the pod's service account"
};

// The configuration of a pod: KUBERNETES_SERVICE_HOST and _PORT, and the directory that the kubelet
// mounts. NotFound outside a pod.
inline constexpr std::string_view kServiceAccountDirectory =
    "/var/run/secrets/kubernetes.io/serviceaccount";
Result<ClientConfig> in_cluster_config(
    const std::string& host, const std::string& port,
    const std::string& directory = std::string(kServiceAccountDirectory));

// The current context of a kubeconfig, or the named one. File names in it are relative to its
// directory. Credential plug-ins (exec) are an error that says what to do instead: Gantry executes
// nothing from the file.
Result<ClientConfig> load_kubeconfig(const std::string& path, std::string_view context = "");

// Tries --kubeconfig, KUBECONFIG, the pod's service account, and then the files for the caller.
// Person: ~/.kube/config, the administrator's files of kubeadm, K3s and RKE2, the kubelet's. Node:
// only the kubelet's.
enum class Caller : std::uint8_t { Person, Node };
Result<ClientConfig> find_client_config(const std::string& kubeconfig_flag, Caller who);

}  // namespace gantry::kube
