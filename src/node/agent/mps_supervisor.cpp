// SPDX-License-Identifier: Apache-2.0
#include "node/agent/mps_supervisor.hpp"

#include "container/driver_dir/current.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kMpsSupervisorComponent = "mps";
constexpr std::chrono::milliseconds kCheckInterval =
    5s;  // between two checks of the daemons, and two attempts to start one

mps::RunMode enter_of(const sys::Host& host) {
  return driver_dir::simulated_engine_root(host).empty() ? mps::RunMode::Chroot
                                                         : mps::RunMode::Direct;
}

bool has(const std::vector<mps::DaemonPlan>& plans, const std::string& resource) {
  return std::any_of(plans.begin(), plans.end(),
                     [&](const auto& plan) { return plan.resource == resource; });
}

}  // namespace

MpsSupervisor::MpsSupervisor(sys::Loop& loop, const sys::Host& host, Log log,
                             std::function<void()> on_change)
    : loop_(loop),
      host_(host),
      log_(std::move(log)),
      on_change_(std::move(on_change)),
      task_({.name = "mps"}, [this](const std::stop_token&) -> Status {
        work();
        return {};
      }) {
  task_.start();
}

void MpsSupervisor::want(std::vector<mps::DaemonPlan> plans, const std::string& mps_root) {
  for (const auto& plan : plans) states_.try_emplace(plan.resource);
  std::erase_if(states_, [&](const auto& entry) { return !has(plans, entry.first); });
  const std::lock_guard lock(mutex_);
  DesiredDaemons desired{std::move(plans), mps_root};
  if (desired == desired_) return;
  desired_ = std::move(desired);
  task_.set_period(desired_.plans.empty() ? std::nullopt : std::optional(kCheckInterval));
  task_.wake();
}

bool MpsSupervisor::all_ready(const States& states) {
  return std::all_of(states.begin(), states.end(),
                     [](const auto& entry) { return entry.second.why.empty(); });
}

void MpsSupervisor::withdraw_unready(resources::Offer& offer) const {
  std::erase_if(offer.resources, [&](const model::AdvertisedResource& resource) {
    const auto state = states_.find(resource.name);
    if (state == states_.end() || state->second.why.empty()) return false;
    offer.notes.push_back(fmt::format("{} is not offered: {}", resource.name, state->second.why));
    return true;
  });
}

void MpsSupervisor::work() {
  DesiredDaemons desired;
  {
    const std::lock_guard lock(mutex_);
    desired = desired_;
  }
  if (desired.plans.empty() && before_.plans.empty()) return;
  tell(serve(desired, before_));
  before_ = std::move(desired);
}

// The state of each daemon after this round.
MpsSupervisor::States MpsSupervisor::serve(const DesiredDaemons& desired,
                                           const DesiredDaemons& before) {
  States states;
  const auto control = mps::ControlDaemon::find(
      host_, desired.root.empty() ? before.root : desired.root, enter_of(host_));
  for (const auto& plan : before.plans) {
    if (!control.ok() || has(desired.plans, plan.resource)) continue;
    const auto stopped = control->stop(plan);
    if (!stopped.ok())
      log_.warning(kMpsSupervisorComponent, "cannot stop the MPS daemon",
                   {{"resource", plan.resource}, {"err", stopped.error()}});
  }
  for (const auto& plan : desired.plans) {
    auto& state = states[plan.resource];
    state.why = "";
    if (!control.ok()) {
      state.why = control.error().text();
      continue;
    }
    const bool known =
        std::find(before.plans.begin(), before.plans.end(), plan) != before.plans.end();
    if (known && control->check(plan.resource).ok()) continue;
    if (const auto started = control->start(plan); !started.ok())
      state.why = started.error().text();
  }
  if (control.ok()) {
    const auto shown = control->set_ready(!states.empty() && all_ready(states));
    if (!shown.ok())
      log_.warning(kMpsSupervisorComponent, "cannot mark whether MPS is ready",
                   {{"err", shown.error()}});
  }
  return states;
}

void MpsSupervisor::tell(States states) {
  loop_.post([this, alive = std::weak_ptr(alive_), states = std::move(states)] {
    if (alive.expired()) return;
    bool changed = false;
    for (const auto& [resource, state] : states) {
      const auto known = states_.find(resource);
      if (known == states_.end() || known->second.why == state.why) continue;
      if (state.why.empty()) {
        log_.info(kMpsSupervisorComponent, "MPS daemon answers", {{"resource", resource}});
      } else {
        log_.error(kMpsSupervisorComponent, "MPS daemon does not answer",
                   {{"resource", resource}, {"err", state.why}});
      }
      known->second = state;
      changed = true;
    }
    if (changed) on_change_();
  });
}

}  // namespace gantry::agent
