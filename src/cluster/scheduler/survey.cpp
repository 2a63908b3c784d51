// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/survey.hpp"

#include <fmt/format.h>

#include <chrono>

namespace gantry::scheduler {
namespace {

void note(Survey& survey, std::string_view kind, json::Value object, const Status& read) {
  if (read.ok()) return;
  const auto& meta = object["metadata"];
  const auto space = meta["namespace"].string().value_or("");
  survey.notes.push_back(fmt::format("{} {}{}{}: {}", kind, space, space.empty() ? "" : "/",
                                     meta["name"].string().value_or("?"), read.error().text()));
}

void add_node(Survey& survey, json::Value node, const SeeNode& see_node) {
  note(survey, "node", node, survey.book->set_node(node));
  if (see_node) see_node(node);
}

void add_pods(Survey& survey, json::Value pods) {
  const auto now = std::chrono::steady_clock::now();
  for (const auto pod : pods["items"]) {
    // One that waits holds nothing, whatever is wrong with it.
    if (pod["spec"]["nodeName"].string().value_or("").empty()) continue;
    note(survey, "pod", pod, survey.book->set_pod(pod, now));
  }
}

Status with_rights(Status read) {
  if (read.ok() || read.error().code() != Errc::Denied) return read;
  return Error(
      Errc::Denied,
      fmt::format("{}; it takes the right to list nodes and pods: `kubectl auth can-i list "
                  "pods -A` tells whether you have it, the ClusterRole `view` with nodes "
                  "gives it",
                  read.error().text()));
}

// Without the right to read them none is barred, as far as we know.
void add_barred(Survey& survey, const kube::Get& get, const std::string& node) {
  const auto path = fmt::format("/api/v1/namespaces/{}/configmaps", podspec::kBarringSpace);
  const auto add = [&](json::Value map) {
    if (const auto read = survey.book->set_barred(map); !read.ok())
      survey.notes.push_back(read.error().text());
  };
  if (!node.empty()) {
    const auto map =
        get(fmt::format("{}/{}{}", path, podspec::kBarringPrefix, kube::escaped(node)));
    if (map.ok()) add(map->root());
    return;
  }
  const auto maps = kube::each_page(get, path, [&](json::Value list) {
    for (const auto map : list["items"]) add(map);
  });
  (void)maps;
}

Status read_all(Survey& survey, const kube::Get& get, const SeeNode& see_node) {
  GANTRY_CHECK(kube::each_page(get, "/api/v1/nodes", [&](json::Value nodes) {
    for (const auto node : nodes["items"]) add_node(survey, node, see_node);
  }));
  return kube::each_page(get, kube::kLivingPods, [&](json::Value pods) { add_pods(survey, pods); });
}

Status read_one(Survey& survey, const kube::Get& get, const std::string& name,
                const SeeNode& see_node) {
  GANTRY_TRY(const auto node, get(kube::node_path(name)));
  add_node(survey, node.root(), see_node);
  return kube::each_page(
      get, fmt::format("/api/v1/pods?fieldSelector=spec.nodeName%3D{}", kube::escaped(name)),
      [&](json::Value pods) { add_pods(survey, pods); });
}

}  // namespace

std::vector<placement::NodeView> Survey::views() const {
  std::vector<placement::NodeView> views;
  for (const auto& name : book->nodes()) {
    auto view = book->view(name);
    if (!view.cards.empty()) views.push_back(std::move(view));
  }
  return views;
}

Result<Survey> survey(const kube::Get& get, const std::string& node, const SeeNode& see_node) {
  Survey made{.book = std::make_unique<scheduler::Book>()};
  GANTRY_CHECK(with_rights(node.empty() ? read_all(made, get, see_node)
                                        : read_one(made, get, node, see_node)));
  add_barred(made, get, node);
  return made;
}

void add_quotas(Survey& survey, const kube::Get& get, const std::string& name_space) {
  const auto path = "/api/v1/namespaces/" + kube::escaped(name_space);
  if (const auto space = get(path); space.ok())
    note(survey, "namespace", space->root(), survey.book->set_namespace(space->root()));
  const auto quotas = kube::each_page(get, path + "/resourcequotas", [&](json::Value list) {
    for (const auto quota : list["items"])
      note(survey, "resourcequota", quota, survey.book->set_resource_quota(quota));
  });
  (void)quotas;
}

}  // namespace gantry::scheduler
