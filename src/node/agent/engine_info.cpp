// SPDX-License-Identifier: Apache-2.0
#include "node/agent/engine_info.hpp"

#include "node/kubelet/runtime_version.hpp"

#include <fmt/format.h>

#include <vector>

namespace gantry::agent {
namespace {

constexpr std::chrono::milliseconds kPatience{500};

std::vector<std::string> places(const std::string& socket) {
  if (!socket.empty()) return {socket};
  return {"/run/containerd/containerd.sock", "/run/crio/crio.sock",
          "/run/k3s/containerd/containerd.sock", "/var/snap/microk8s/common/run/containerd.sock"};
}

}  // namespace

EngineInfo detect_engine(const sys::Host& host, const std::string& socket) {
  for (const auto& place : places(socket)) {
    if (!host.info(place).ok()) continue;
    const auto runtime = kubelet::query_runtime_version(host.outside(place), kPatience);
    if (!runtime.ok()) continue;
    return {.name = fmt::format("{} {}", runtime->name, runtime->version),
            .has_cdi = kubelet::supports_cdi_names(*runtime)};
  }
  return {};
}

}  // namespace gantry::agent
