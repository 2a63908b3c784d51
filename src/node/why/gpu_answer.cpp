// SPDX-License-Identifier: Apache-2.0
#include "node/why/gpu_answer.hpp"

#include "gpu/probe/snapshot.hpp"
#include "node/kubelet/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;
using model::HealthState;

Step new_step() {
  return {.id = "device.answer", .what = "Its GPUs answer the driver"};
}

void note_problem(Step& step, StepStatus verdict, const std::string& problem) {
  if (step.verdict == StepStatus::Failed) return;  // the first one is the cause
  step.verdict = verdict;
  step.cause = problem;
  step.remedy = "gantry doctor";
}

void look_at(const model::Gpu& gpu, Step& step) {
  const auto reasons = fmt::format("{}", fmt::join(gpu.health.reasons, ", "));
  switch (gpu.health.state) {
    case HealthState::Ok: break;
    case HealthState::Degraded:
      note_problem(step, StepStatus::Warning, fmt::format("{}: {}", gpu.uuid.text, reasons));
      break;
    case HealthState::Lost:
      note_problem(step, StepStatus::Failed,
                   fmt::format("{} does not answer: {}", gpu.uuid.text, reasons));
      break;
    case HealthState::Unknown:
      if (step.verdict == StepStatus::Ok) step.verdict = StepStatus::Unknown;
      break;
  }
  step.read += fmt::format("{}{} ({})", step.read.empty() ? "" : ", ", gpu.uuid.text, gpu.name);
}

// The ids of whole GPUs, once each: a replica's id is its card's with a number behind it.
std::vector<model::GpuUuid> gpus_of(const kubelet::Checkpoint& checkpoint, json::Value pod) {
  std::set<model::GpuUuid> uuids;
  for (const auto& holder : checkpoint.holders) {
    if (holder.pod.uid != pod["metadata"]["uid"].string()) continue;
    for (const auto& id : holder.ids)
      if (id.starts_with("GPU-")) uuids.insert({id.substr(0, id.find("::"))});
  }
  return {uuids.begin(), uuids.end()};
}

}  // namespace

Step gpu_answer_step(const std::vector<model::GpuUuid>& uuids, const model::Inventory& inventory) {
  auto step = new_step();
  for (const auto& uuid : uuids) {
    const auto found = std::find_if(inventory.gpus.begin(), inventory.gpus.end(),
                                    [&](const model::Gpu& gpu) { return gpu.uuid == uuid; });
    if (found != inventory.gpus.end()) {
      look_at(*found, step);
    } else {
      step.read += fmt::format("{}{} is missing", step.read.empty() ? "" : ", ", uuid.text);
      note_problem(step, StepStatus::Failed,
                   fmt::format("the driver does not list {}, which the pod holds", uuid.text));
    }
  }
  return step;
}

std::optional<Step> gpu_answer_step(const sys::Host& machine, const std::string& device_plugins,
                                    json::Value pod) {
  const auto checkpoint = kubelet::read_checkpoint(machine.outside(device_plugins));
  if (!checkpoint.ok()) return std::nullopt;
  const auto uuids = gpus_of(*checkpoint, pod);
  if (uuids.empty()) return std::nullopt;
  const auto inventory = probe::snapshot(machine, {.files = probe::FindFiles::No});
  if (inventory.ok()) return gpu_answer_step(uuids, *inventory);
  auto step = new_step();
  step.verdict = StepStatus::Unknown;
  step.read = inventory.error().text();
  return step;
}

}  // namespace gantry::why
