// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/cluster_snapshot.hpp"

#include <fmt/format.h>

#include <chrono>

namespace gantry::scheduler {
namespace {

void note(ClusterSnapshot& survey, std::string_view kind, json::Value object, const Status& read) {
  if (read.ok()) return;
  const auto& meta = object["metadata"];
  const auto space = meta["namespace"].string().value_or("");
  survey.notes.push_back(fmt::format("{} {}{}{}: {}", kind, space, space.empty() ? "" : "/",
                                     meta["name"].string().value_or("?"), read.error().text()));
}

void add_node(ClusterSnapshot& survey, json::Value node, const OnNode& on_node) {
  note(survey, "node", node, survey.cache->set_node(node));
  if (on_node) on_node(node);
}

void add_pods(ClusterSnapshot& survey, json::Value pods) {
  const auto now = std::chrono::steady_clock::now();
  for (const auto pod : pods["items"]) {
    // A waiting pod holds nothing, even if its request is not valid.
    if (pod["spec"]["nodeName"].string().value_or("").empty()) continue;
    note(survey, "pod", pod, survey.cache->set_pod(pod, now));
  }
}

Status with_rights(Status read) {
  if (read.ok() || read.error().code() != Errc::Denied) return read;
  return Error(
      Errc::Denied,
      fmt::format("{}; you need permission to list nodes and pods: `kubectl auth can-i list pods "
                  "-A` shows whether you have it, the ClusterRole `view` plus nodes grants it",
                  read.error().text()));
}

// Without permission to read them, no card counts as marked unhealthy.
void add_unhealthy_gpus(ClusterSnapshot& survey, const kube::GetPage& get,
                        const std::string& node) {
  const auto path = fmt::format("/api/v1/namespaces/{}/configmaps", podspec::kUnhealthyNamespace);
  const auto add = [&](json::Value map) {
    if (const auto read = survey.cache->set_unhealthy_gpus(map); !read.ok())
      survey.notes.push_back(read.error().text());
  };
  if (!node.empty()) {
    const auto map =
        get(fmt::format("{}/{}{}", path, podspec::kUnhealthyPrefix, kube::percent_encode(node)));
    if (map.ok()) add(map->root());
    return;
  }
  const auto maps = kube::each_page(get, path, [&](json::Value list) {
    for (const auto map : list["items"]) add(map);
  });
  (void)maps;
}

Status read_all(ClusterSnapshot& survey, const kube::GetPage& get, const OnNode& on_node) {
  GANTRY_CHECK(kube::each_page(get, "/api/v1/nodes", [&](json::Value nodes) {
    for (const auto node : nodes["items"]) add_node(survey, node, on_node);
  }));
  return kube::each_page(get, kube::kActivePodsPath,
                         [&](json::Value pods) { add_pods(survey, pods); });
}

Status read_one(ClusterSnapshot& survey, const kube::GetPage& get, const std::string& name,
                const OnNode& on_node) {
  GANTRY_TRY(const auto node, get(kube::node_path(name)));
  add_node(survey, node.root(), on_node);
  return kube::each_page(
      get, fmt::format("/api/v1/pods?fieldSelector=spec.nodeName%3D{}", kube::percent_encode(name)),
      [&](json::Value pods) { add_pods(survey, pods); });
}

}  // namespace

std::vector<placement::NodeView> ClusterSnapshot::views() const {
  std::vector<placement::NodeView> views;
  for (const auto& name : cache->nodes()) {
    auto view = cache->view(name);
    if (!view.cards.empty()) views.push_back(std::move(view));
  }
  return views;
}

Result<ClusterSnapshot> read_cluster(const kube::GetPage& get, const std::string& node,
                                     const OnNode& on_node) {
  ClusterSnapshot made{.cache = std::make_unique<scheduler::ClusterCache>()};
  GANTRY_CHECK(with_rights(node.empty() ? read_all(made, get, on_node)
                                        : read_one(made, get, node, on_node)));
  add_unhealthy_gpus(made, get, node);
  return made;
}

void add_quotas(ClusterSnapshot& survey, const kube::GetPage& get, const std::string& name_space) {
  const auto path = "/api/v1/namespaces/" + kube::percent_encode(name_space);
  if (const auto space = get(path); space.ok())
    note(survey, "namespace", space->root(), survey.cache->set_namespace(space->root()));
  const auto quotas = kube::each_page(get, path + "/resourcequotas", [&](json::Value list) {
    for (const auto quota : list["items"])
      note(survey, "resourcequota", quota, survey.cache->set_resource_quota(quota));
  });
  (void)quotas;
}

}  // namespace gantry::scheduler
