// SPDX-License-Identifier: Apache-2.0
#include "node/agent/shared_gpu_reporter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kSharesReporterComponent = "shares";

// The members of a JSON object that differ.
std::string differences(const OptionalEntries& wanted, const json::Value& now) {
  std::string list;
  for (const auto& [key, value] : wanted) {
    if (now[key].string() == value) continue;
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", json::quote(key),
                        value ? json::quote(*value) : "null");
  }
  return list;
}

std::string object(std::string_view name, const std::string& members) {
  return members.empty() ? "" : fmt::format("\"{}\":{{{}}}", name, members);
}

std::string joined(const std::string& one, const std::string& other) {
  return one + (one.empty() || other.empty() ? "" : ",") + other;
}

}  // namespace

NodePatches patches_for(const NodeReport& wanted, const json::Document& node) {
  const auto metadata = node["metadata"];
  const auto status = node["status"];
  const auto words =
      joined(object("annotations", differences(wanted.annotations, metadata["annotations"])),
             object("labels", differences(wanted.labels, metadata["labels"])));
  const auto numbers =
      joined(object("capacity", differences(wanted.capacity, status["capacity"])),
             object("allocatable", differences(wanted.capacity, status["allocatable"])));
  return {.metadata = words.empty() ? "" : fmt::format("{{\"metadata\":{{{}}}}}", words),
          .status = numbers.empty() ? "" : fmt::format("{{\"status\":{{{}}}}}", numbers)};
}

SharedGpuReporter::SharedGpuReporter(kube::ClientConfig access, Options options, Log log)
    : api_(std::move(access)),
      options_(std::move(options)),
      log_(std::move(log)),
      task_({.name = "shared GPUs",
             .period = options_.look_every,
             .retry = {.first = 2s, .max = 30s, .wakes = sys::BackgroundTask::Wakes::Honored},
             .on_error = [this](const Error& error,
                                auto) { log_.warning(kSharesReporterComponent, error.text()); }},
            [this](const std::stop_token&) { return work(); }) {
  task_.start();
}

void SharedGpuReporter::set_report(NodeReport report) {
  {
    const std::lock_guard lock(mutex_);
    if (wanted_ == report) return;
    wanted_ = std::move(report);
  }
  task_.wake();
}

Status SharedGpuReporter::look(const NodeReport& wanted) {
  const auto path = kube::node_path(options_.node);
  GANTRY_TRY(const auto node, api_.get(path));
  const auto patches = patches_for(wanted, node);
  if (!patches.metadata.empty()) {
    GANTRY_TRY(const auto done, api_.patch(path, kube::Patch::Merge, patches.metadata));
    log_.info(kSharesReporterComponent,
              fmt::format("node {}: wrote which GPUs are shared", options_.node));
  }
  if (!patches.status.empty()) {
    GANTRY_TRY(const auto done, api_.patch(path + "/status", kube::Patch::Merge, patches.status));
    log_.info(kSharesReporterComponent,
              fmt::format("node {}: wrote the number of shared GPUs", options_.node));
  }
  return {};
}

Status SharedGpuReporter::work() {
  std::optional<NodeReport> wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted = wanted_;
  }
  return wanted ? look(*wanted) : Status{};
}

}  // namespace gantry::agent
