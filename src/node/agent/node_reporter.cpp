// SPDX-License-Identifier: Apache-2.0
#include "node/agent/node_reporter.hpp"

#include <algorithm>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kReporterComponent = "cluster";
constexpr std::size_t kMaxWaitingEvents = 100;  // older events are dropped

}  // namespace

NodeReporter::NodeReporter(kube::ClientConfig access, Options options, Log log)
    : api_(std::move(access)),
      options_(std::move(options)),
      log_(std::move(log)),
      task_({.name = "node reports",
             .retry = {.first = 1s, .max = 60s},
             .on_error =
                 [this](const Error& error, std::chrono::milliseconds retry_in) {
                   log_.warning(
                       kReporterComponent, "cannot report to the API server, trying again",
                       {{"err", error},
                        {"retry_s", duration_cast<std::chrono::seconds>(retry_in).count()}});
                 }},
            [this](const std::stop_token&) { return work(); }) {
  task_.start();
}

void NodeReporter::labels(labels::Labels labels) {
  const std::lock_guard lock(mutex_);
  pending_.labels = std::move(labels);
  task_.wake();
}

void NodeReporter::health(const std::vector<model::DeviceHealth>& health, std::int64_t now_s) {
  if (options_.style == ReportStyle::Gke) return;
  const bool healthy =
      std::all_of(health.begin(), health.end(), [](const auto& device) { return device.usable; });
  const std::lock_guard lock(mutex_);
  if (healthy != healthy_ || changed_s_ == 0) changed_s_ = now_s;
  healthy_ = healthy;
  pending_.condition = health_condition(health, now_s, changed_s_);
  task_.wake();
}

void NodeReporter::event(const health::HealthNotice& notice) {
  const std::lock_guard lock(mutex_);
  if (options_.style == ReportStyle::Gke) {
    if (!notice.xid) return;
    pending_.events.push_back(gke_event(options_.node, *notice.xid, notice.at_unix_s, ++events_));
    if (is_gke_condition(*notice.xid) && xids_.insert(*notice.xid).second)
      set_gke_condition(notice.at_unix_s);
  } else {
    pending_.events.push_back(node_event(options_.node, notice, ++events_));
  }
  if (pending_.events.size() > kMaxWaitingEvents) pending_.events.pop_front();
  task_.wake();
}

void NodeReporter::driver_version(std::string_view version) {
  const std::lock_guard lock(mutex_);
  pending_.annotations = driver_annotations(options_.node, version);
  task_.wake();
}

void NodeReporter::beat(std::int64_t now_s) {
  const std::lock_guard lock(mutex_);
  if (xids_.empty()) return;
  set_gke_condition(now_s);
  task_.wake();
}

void NodeReporter::set_gke_condition(std::int64_t now_s) {
  if (changed_s_ == 0) changed_s_ = now_s;
  pending_.condition = gke_condition(xids_, options_.boot_id, now_s, changed_s_);
}

// XIDs of an earlier boot no longer count; XIDs of this boot from before our start do.
Status NodeReporter::clear_previous_boot() {
  GANTRY_TRY(const auto node, api_.get(kube::node_path(options_.node)));
  const auto known = parse_gke_condition(node);
  boot_known_ = true;
  if (known.boot_id.empty()) return {};
  if (known.boot_id != options_.boot_id) {
    GANTRY_TRY(const auto done, api_.patch(kube::node_path(options_.node) + "/status",
                                           kube::Patch::Strategic, without_gke_condition()));
    return {};
  }
  const std::lock_guard lock(mutex_);
  xids_.insert(known.xids.begin(), known.xids.end());
  return {};
}

Status NodeReporter::work() {
  PendingReport todo;
  {
    const std::lock_guard lock(mutex_);
    todo = std::exchange(pending_, {});
  }
  if (todo.empty()) return {};
  auto told = tell(todo);
  if (told.ok()) return {};
  // Newer values win; values that were not sent are sent later.
  const std::lock_guard lock(mutex_);
  if (!pending_.labels) pending_.labels = std::move(todo.labels);
  if (pending_.condition.empty()) pending_.condition = std::move(todo.condition);
  if (pending_.annotations.empty()) pending_.annotations = std::move(todo.annotations);
  pending_.events.insert(pending_.events.begin(), todo.events.begin(), todo.events.end());
  while (pending_.events.size() > kMaxWaitingEvents) pending_.events.pop_front();
  return told;
}

// Removes what was sent from `todo`. One refused request does not hold back the others.
Status NodeReporter::tell(PendingReport& todo) {
  Status bad;
  if (options_.style == ReportStyle::Gke && !boot_known_) GANTRY_CHECK(clear_previous_boot());
  if (!todo.annotations.empty()) {
    auto done = api_.patch(kube::node_path(options_.node), kube::Patch::Apply, todo.annotations);
    if (done.ok()) todo.annotations.clear();
    if (!done.ok()) bad = std::move(done).error();
  }
  if (todo.labels) {
    bad = report_labels(*todo.labels).in("labels");
    if (bad.ok()) todo.labels.reset();
  }
  if (!todo.condition.empty()) {
    const auto path = kube::node_path(options_.node) + "/status";
    auto done = api_.patch(path, kube::Patch::Strategic, todo.condition);
    if (done.ok()) todo.condition.clear();
    if (!done.ok() && bad.ok()) bad = std::move(done).error();
  }
  while (!todo.events.empty()) {
    auto made = api_.create("/api/v1/namespaces/default/events", todo.events.front());
    const bool there = !made.ok() && made.error().code() == Errc::Exists;
    if (!made.ok() && !there) return std::move(made).error();
    todo.events.pop_front();
  }
  return bad;
}

Status NodeReporter::report_labels(const labels::Labels& labels) {
  if (!label_target_known_) {
    const auto features = api_.get(features_path(options_.name_space));
    label_target_ = options_.prefer_node_feature && features.ok() ? LabelTarget::NodeFeature
                                                                  : LabelTarget::Node;
  }
  if (label_target_ == LabelTarget::NodeFeature) {
    GANTRY_CHECK(report_node_feature(labels));
    label_target_known_ = true;
    return {};
  }
  GANTRY_TRY(const auto done, api_.patch(kube::node_path(options_.node), kube::Patch::Apply,
                                         node_with_labels(options_.node, labels)));
  label_target_known_ =
      true;  // not before: a server that was unreachable has not said which kinds it knows
  log_.info(kReporterComponent, "wrote labels to the node",
            {{"labels", labels.size()}, {"node", options_.node}});
  return {};
}

Status NodeReporter::report_node_feature(const labels::Labels& labels) {
  if (!object_) {
    FeatureObject object{.node = options_.node, .name_space = options_.name_space};
    auto owners = find_owners(api_, options_.name_space, options_.pod);
    // Without permission to read pods, the object stays after we are gone; this is logged once.
    if (!owners.ok()) {
      if (owners.error().code() == Errc::Busy) return owners.error();
      log_.warning(kReporterComponent, "cannot find the owner of this pod",
                   {{"err", owners.error()}});
    } else {
      object.owners = *std::move(owners);
    }
    object_ = std::move(object);
  }
  GANTRY_CHECK(apply_features(api_, *object_, labels));
  log_.info(kReporterComponent, "wrote labels to a NodeFeature",
            {{"labels", labels.size()}, {"object", labels::node_feature_name(options_.node)}});
  return {};
}

}  // namespace gantry::agent
