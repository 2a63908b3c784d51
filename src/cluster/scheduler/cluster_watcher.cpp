// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/cluster_watcher.hpp"

#include "net/kube/informer.hpp"
#include "net/kube/pages.hpp"

#include <fmt/format.h>

#include <atomic>

namespace gantry::scheduler {
namespace {

constexpr std::int64_t kDetails = 2;  // the -v that shows details

constexpr const char* kWithoutConfigMaps =
    "give the scheduler's account get, list and watch on configmaps in kube-system, with a Role as "
    "in deploy/sharing-base/extender-rbac.yaml; until then, GPUs that a ConfigMap "
    "unhealthy-gpu-NODE names are used";

}  // namespace

// One kind of object: puts what it reads into the cache.
class ClusterWatcher::ResourceWatch : public kube::ResourceEventHandler {
 public:
  using Set = Status (*)(ClusterCache& cache, const json::Value& object);
  using Remove = void (*)(ClusterCache& cache, const ObjectRef& object);

  struct Kinds {
    const char* name;
    const char* path;
    Set set;
    Remove remove;
    std::string_view name_prefix = {};
    // What a refusal means and what to do; nullptr: the kind is required.
    const char* without = nullptr;
  };
  ResourceWatch(const Kinds& kinds, const kube::ClientConfig& access, ClusterCache& cache, Log log)
      : kinds_(kinds), cache_(cache), log_(std::move(log)) {
    informer_ = std::make_unique<kube::Informer>(
        access,
        kube::InformerOptions{.path = kinds.path, .name_prefix = std::string(kinds.name_prefix)},
        *this);
  }

  void stop() { informer_->stop(); }
  bool awaited() const { return !informer_->synced() && !refused_; }
  const char* name() const { return kinds_.name; }
  Kind kind() const {
    const auto counts = informer_->counts();
    return {.name = name(),
            .synced = informer_->synced(),
            .silence = informer_->silence(),
            .lists = counts.lists,
            .events = counts.events,
            .failures = counts.failures,
            .objects = counts.objects};
  }

  void set(const json::Document& object) override {
    const auto taken = kinds_.set(cache_, object.root());
    if (taken.ok()) return;
    // A pod with an invalid request gets an event when the scheduler asks about it.
    if (taken.error().code() == Errc::Invalid) {
      log_.detail(kDetails, name(), "object is not valid", {{"err", taken.error()}});
    } else {
      log_.warning(name(), "object is not valid", {{"err", taken.error()}});
    }
  }
  void remove(const ObjectRef& object) override { kinds_.remove(cache_, object); }
  void on_error(const Error& error, std::chrono::milliseconds retry_in) override {
    if (kinds_.without != nullptr && error.code() == Errc::Denied) {
      // It is tried again and again, but logged only once.
      if (!refused_.exchange(true))
        log_.warning(name(), "the API server refuses to list this kind, continuing without it",
                     {{"err", error.text()}, {"remedy", kinds_.without}});
      return;
    }
    log_.warning(name(), "cannot list or watch, trying again",
                 {{"err", error}, {"retry_s", static_cast<double>(retry_in.count()) / 1000}});
  }

 private:
  Kinds kinds_;
  ClusterCache& cache_;
  Log log_;
  std::atomic<bool> refused_{false};
  std::unique_ptr<kube::Informer> informer_;  // last, because it calls this object
};

ClusterWatcher::ClusterWatcher(const kube::ClientConfig& access, ClusterCache& cache,
                               const Log& log) {
  const ResourceWatch::Kinds kinds[] = {
      {"nodes", "/api/v1/nodes",
       [](ClusterCache& into, const json::Value& node) { return into.set_node(node); },
       [](ClusterCache& from, const ObjectRef& node) { from.remove_node(node.name); }},
      {"pods", "/api/v1/pods",
       [](ClusterCache& into, const json::Value& pod) { return into.set_pod(pod, now_steady()); },
       [](ClusterCache& from, const ObjectRef& pod) { from.remove_pod(pod.uid, now_steady()); }},
      {"namespaces", "/api/v1/namespaces",
       [](ClusterCache& into, const json::Value& space) { return into.set_namespace(space); },
       [](ClusterCache& from, const ObjectRef& space) { from.remove_namespace(space.name); }},
      {"resourcequotas", "/api/v1/resourcequotas",
       [](ClusterCache& into, const json::Value& quota) { return into.set_resource_quota(quota); },
       [](ClusterCache& from, const ObjectRef& quota) {
         from.remove_resource_quota(quota.name_space, quota.name);
       }},
      {"configmaps", "/api/v1/namespaces/kube-system/configmaps",
       [](ClusterCache& into, const json::Value& map) { return into.set_unhealthy_gpus(map); },
       [](ClusterCache& from, const ObjectRef& map) { from.remove_unhealthy_gpus(map.name); },
       podspec::kUnhealthyPrefix, kWithoutConfigMaps}};
  for (const auto& kind : kinds)
    watches_.push_back(std::make_unique<ResourceWatch>(kind, access, cache, log));
}

ClusterWatcher::~ClusterWatcher() {
  stop();
}

void ClusterWatcher::stop() {
  for (const auto& following : watches_) following->stop();
}

std::string ClusterWatcher::missing() const {
  std::string names;
  for (const auto& following : watches_) {
    if (!following->awaited()) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", following->name());
  }
  return names;
}

std::vector<ClusterWatcher::Kind> ClusterWatcher::kinds() const {
  std::vector<Kind> all;
  all.reserve(watches_.size());
  for (const auto& following : watches_) all.push_back(following->kind());
  return all;
}

Status read_bound_pods(kube::Api& api, ClusterCache& cache, TimePoint now) {
  return kube::each_page(api, kube::kActivePodsPath, [&](const json::Value& list) {
    for (const auto pod : list["items"]) {
      if (pod["spec"]["nodeName"]) (void)cache.set_pod(pod, now);
    }
  });
}

}  // namespace gantry::scheduler
