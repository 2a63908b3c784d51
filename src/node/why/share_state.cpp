// SPDX-License-Identifier: Apache-2.0
#include "node/why/share_state.hpp"

#include "container/grants/grants.hpp"
#include "sharing/daemon/client.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;
using States = std::vector<daemon::ShareState>;

std::string describe(const daemon::GpuState& gpu) {
  const auto used = std::max(gpu.memory_held, gpu.memory_used) >> 20U;
  const auto memory = gpu.memory_limit == UINT64_MAX
                          ? fmt::format("{} MiB", used)
                          : fmt::format("{} of {} MiB", used, gpu.memory_limit >> 20U);
  return fmt::format("{} and {:.0f} % of the time of {}", memory, gpu.used * 100, gpu.uuid.text);
}

std::string describe(const daemon::ShareState& state) {
  std::vector<std::string> gpus;
  for (const auto& gpu : state.gpus) gpus.push_back(describe(gpu));
  return fmt::format("{} in use by {} process{}", fmt::join(gpus, "; "), state.processes.size(),
                     state.processes.size() == 1 ? "" : "es");
}

Result<States> shares_on(const sys::Host& machine) {
  auto client = daemon::Client::connect_to_ready(machine);
  if (!client.ok() && client.error().code() == Errc::NotFound) return States{};
  if (!client.ok()) return client.error();
  return client->list();
}

const daemon::ShareState* find(const States& states, const std::string& share) {
  const auto found = std::find_if(states.begin(), states.end(),
                                  [&](const auto& state) { return state.share.name == share; });
  return found == states.end() ? nullptr : &*found;
}

}  // namespace

Step share_state_step(const std::string& container, const std::string& share,
                      const daemon::ShareState* state) {
  Step step{.id = "share.state", .what = fmt::format("Container {} has its share", container)};
  if (state == nullptr) {
    step.verdict = StepStatus::Failed;
    step.read = fmt::format("there is no share {}", share);
    step.cause =
        fmt::format("the share of container {} is gone: no new process can use its GPU", container);
    step.remedy = "delete the pod and create it again; on the node: gantry doctor says more";
    return step;
  }
  step.read = describe(*state);
  if (state->refused == 0) return step;
  step.verdict = StepStatus::Warning;
  step.cause = fmt::format(
      "{} allocation{} did not fit into its share: the program got an out-of-memory error",
      state->refused, state->refused == 1 ? "" : "s");
  step.remedy = "ask for more memory in the pod, or make the program use less";
  return step;
}

std::vector<Step> share_state_steps(const sys::Host& machine, json::Value pod) {
  std::vector<Step> steps;
  const auto uid = pod["metadata"]["uid"].string();
  const auto granted = grants::list(machine);
  if (!granted.ok()) return steps;  // nothing was ever granted here
  const bool any = std::any_of(granted->begin(), granted->end(), [&](const auto& written) {
    return written.grant.pod.uid == uid && written.grant.share;
  });
  if (!any) return steps;
  const auto states = shares_on(machine);
  if (!states.ok())
    return {{.id = "share.state",
             .what = "Its containers have their shares",
             .verdict = StepStatus::Unknown,
             .read = states.error().text()}};
  for (const auto& written : *granted) {
    if (written.grant.pod.uid != uid || !written.grant.share) continue;
    const auto& share = written.grant.share->name;
    steps.push_back(share_state_step(written.container, share, find(*states, share)));
  }
  return steps;
}

}  // namespace gantry::why
