// SPDX-License-Identifier: Apache-2.0
#include "node/why/notebook.hpp"

#include "base/sys/network_namespace.hpp"
#include "cluster/explain/pod_steps.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace gantry::why {
namespace {

constexpr std::chrono::seconds kHttpTimeout{10};
constexpr std::size_t kPortLimit = 8;
constexpr std::uint16_t kJupyterPort = 8888;  // its default

void add_ports(std::vector<std::uint16_t>& ports, json::Value container) {
  for (const auto port : container["ports"]) {
    const auto number = port["containerPort"].u64().value_or(0);
    const bool is_tcp = port["protocol"].string().value_or("TCP") == "TCP";
    if (is_tcp && number > 0 && number <= 65535 && ports.size() < kPortLimit)
      ports.push_back(static_cast<std::uint16_t>(number));
  }
}

// Those of containers with GPUs first: the notebook uses the GPU.
std::vector<std::uint16_t> ports_of(json::Value pod) {
  std::vector<std::uint16_t> ports;
  for (const bool with_gpu : {true, false}) {
    for (const auto container : pod["spec"]["containers"])
      if (explain::gpu_limits(container).empty() != with_gpu) add_ports(ports, container);
  }
  if (std::find(ports.begin(), ports.end(), kJupyterPort) == ports.end())
    ports.push_back(kJupyterPort);
  return ports;
}

// A proxy may keep the path that the browser shows, or remove it; the pod may have TLS of its own,
// with a certificate for another name.
std::vector<JupyterUrl> direct_urls(const std::vector<std::string>& hosts, json::Value pod,
                                    const JupyterUrl& url) {
  std::vector<std::string> prefixes{url.server.prefix};
  if (!url.server.prefix.empty()) prefixes.emplace_back();
  std::vector<JupyterUrl> urls;
  for (const auto& host : hosts) {
    for (const auto port : ports_of(pod)) {
      for (const bool secure : {false, true}) {
        http::Endpoint endpoint{.host = host, .port = port, .secure = secure};
        endpoint.tls.verify = false;
        for (const auto& prefix : prefixes)
          urls.push_back({.server = {.endpoint = endpoint, .prefix = prefix}, .token = url.token});
      }
    }
  }
  return urls;
}

// The pod's Jupyter, or the answer that came nearest to it.
JupyterAnswer ask_first(const std::vector<JupyterUrl>& urls) {
  const auto until = std::chrono::steady_clock::now() + kHttpTimeout;
  JupyterAnswer nearest{.where = "the pod", .error = "it has no address"};
  for (const auto& url : urls) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    auto answer = ask_jupyter(url, "", left);
    if (answer.stage > JupyterStage::NotJupyter) return answer;
    if (nearest.port == 0 || answer.stage > nearest.stage) nearest = std::move(answer);
  }
  return nearest;
}

}  // namespace

NotebookView ask_notebook(json::Value pod, const JupyterUrl& url, int network) {
  NotebookView view{.name_space = pod["metadata"]["namespace"].string_or_empty(),
                    .pod = pod["metadata"]["name"].string_or_empty(),
                    .node = pod["spec"]["nodeName"].string_or_empty()};
  std::vector<std::string> hosts;
  if (auto address = pod["status"]["podIP"].string_or_empty(); !address.empty())
    hosts.push_back(std::move(address));
  if (network >= 0) {
    auto in_pod = hosts;
    in_pod.emplace_back("127.0.0.1");  // Jupyter's default
    const auto entered = sys::in_network_namespace(
        network, [&] { view.direct = ask_first(direct_urls(in_pod, pod, url)); });
    view.on_node = entered.ok();
  }
  if (!view.on_node) view.direct = ask_first(direct_urls(hosts, pod, url));
  view.by_url = ask_jupyter(url, view.direct.kernel, kHttpTimeout);
  return view;
}

}  // namespace gantry::why
