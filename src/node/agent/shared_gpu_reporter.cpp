// SPDX-License-Identifier: Apache-2.0
#include "node/agent/shared_gpu_reporter.hpp"

#include "base/json/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kSharesReporterComponent = "shares";

OptionalEntries differences(const OptionalEntries& wanted, const json::Value& now) {
  auto changed = wanted;
  std::erase_if(changed,
                [&](const auto& entry) { return now[entry.first].string() == entry.second; });
  return changed;
}

// A merge patch of two objects in `part`; "" if nothing changes.
std::string patch_of(std::string_view part,
                     const std::array<std::pair<std::string_view, OptionalEntries>, 2>& changes) {
  const auto none = [](const auto& change) { return change.second.empty(); };
  if (std::all_of(changes.begin(), changes.end(), none)) return "";
  json::Writer out;
  out.object([&] {
    out.object(part, [&] {
      for (const auto& [name, entries] : changes)
        if (!entries.empty()) out.object(name, entries);
    });
  });
  return std::move(out).text();
}

}  // namespace

NodePatches patches_for(const NodeReport& wanted, const json::Document& node) {
  const auto metadata = node["metadata"];
  const auto status = node["status"];
  return {
      .metadata = patch_of(
          "metadata", {{{"annotations", differences(wanted.annotations, metadata["annotations"])},
                        {"labels", differences(wanted.labels, metadata["labels"])}}}),
      .status = patch_of("status",
                         {{{"capacity", differences(wanted.capacity, status["capacity"])},
                           {"allocatable", differences(wanted.capacity, status["allocatable"])}}})};
}

SharedGpuReporter::SharedGpuReporter(kube::ClientConfig access, Options options, Log log)
    : api_(std::move(access)),
      options_(std::move(options)),
      log_(std::move(log)),
      task_({.name = "shared GPUs",
             .period = options_.look_every,
             .retry = {.first = 2s, .max = 30s, .wakes = sys::BackgroundTask::WakePolicy::Honored},
             .on_error =
                 [this](const Error& error, auto) {
                   log_.warning(kSharesReporterComponent,
                                "cannot report the shared GPUs, trying again", {{"err", error}});
                 }},
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
    log_.info(kSharesReporterComponent, "wrote which GPUs are shared", {{"node", options_.node}});
  }
  if (!patches.status.empty()) {
    GANTRY_TRY(const auto done, api_.patch(path + "/status", kube::Patch::Merge, patches.status));
    log_.info(kSharesReporterComponent, "wrote the number of shared GPUs",
              {{"node", options_.node}});
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
