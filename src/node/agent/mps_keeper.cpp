// SPDX-License-Identifier: Apache-2.0
#include "node/agent/mps_keeper.hpp"

#include "container/driver_dir/current.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kMpsKeeperComponent = "mps";
constexpr auto kLook = 5s;  // at daemons that should be there, and again at those that are not

mps::Enter enter_of(const sys::Host& host) {
  return driver_dir::engine_root_of(host).empty() ? mps::Enter::Root : mps::Enter::Place;
}

bool has(const std::vector<mps::DaemonPlan>& plans, const std::string& resource) {
  return std::any_of(plans.begin(), plans.end(),
                     [&](const auto& plan) { return plan.resource == resource; });
}

}  // namespace

MpsKeeper::MpsKeeper(sys::Loop& loop, const sys::Host& host, Log log,
                     std::function<void()> on_change)
    : loop_(loop),
      host_(host),
      log_(std::move(log)),
      on_change_(std::move(on_change)),
      thread_([this] { work(); }) {}

MpsKeeper::~MpsKeeper() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void MpsKeeper::want(std::vector<mps::DaemonPlan> plans, const std::string& mps_root) {
  for (const auto& plan : plans) states_.try_emplace(plan.resource);
  std::erase_if(states_, [&](const auto& entry) { return !has(plans, entry.first); });
  const std::lock_guard lock(mutex_);
  Wish wish{std::move(plans), mps_root};
  if (wish == wish_) return;
  wish_ = std::move(wish);
  ++wishes_;
  wake_.notify_one();
}

bool MpsKeeper::all_ready(const States& states) {
  return std::all_of(states.begin(), states.end(),
                     [](const auto& entry) { return entry.second.why.empty(); });
}

void MpsKeeper::hold_back(resources::Offer& offer) const {
  std::erase_if(offer.resources, [&](const model::OfferedResource& resource) {
    const auto state = states_.find(resource.name);
    if (state == states_.end() || state->second.why.empty()) return false;
    offer.notes.push_back(fmt::format("{} is not offered: {}", resource.name, state->second.why));
    return true;
  });
}

void MpsKeeper::work() {
  std::unique_lock lock(mutex_);
  std::uint64_t done = 0;
  Wish before;
  while (!ending_) {
    const bool nothing = wish_.plans.empty();
    const auto news = [&] { return ending_ || wishes_ != done; };
    if (nothing) {
      wake_.wait(lock, news);
    } else {
      wake_.wait_for(lock, kLook, news);
    }
    if (ending_) return;
    done = wishes_;
    const auto wish = wish_;
    lock.unlock();
    tell(serve(wish, before));
    before = wish;
    lock.lock();
  }
}

// What each daemon is like after this round.
MpsKeeper::States MpsKeeper::serve(const Wish& wish, const Wish& before) {
  States states;
  if (before.plans.empty() && wish.plans.empty()) return states;
  const auto control =
      mps::Control::find(host_, wish.root.empty() ? before.root : wish.root, enter_of(host_));
  for (const auto& plan : before.plans) {
    if (!control.ok() || has(wish.plans, plan.resource)) continue;
    const auto stopped = control->stop(plan);
    if (!stopped.ok()) log_.warning(kMpsKeeperComponent, stopped.error().text());
  }
  for (const auto& plan : wish.plans) {
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
    const auto shown = control->show_ready(!states.empty() && all_ready(states));
    if (!shown.ok()) log_.warning(kMpsKeeperComponent, shown.error().text());
  }
  return states;
}

void MpsKeeper::tell(States states) {
  loop_.post([this, alive = std::weak_ptr(alive_), states = std::move(states)] {
    if (alive.expired()) return;
    bool changed = false;
    for (const auto& [resource, state] : states) {
      const auto known = states_.find(resource);
      if (known == states_.end() || known->second.why == state.why) continue;
      if (state.why.empty()) {
        log_.info(kMpsKeeperComponent, fmt::format("{}: its MPS daemon answers", resource));
      } else {
        log_.error(kMpsKeeperComponent, fmt::format("{}: {}", resource, state.why));
      }
      known->second = state;
      changed = true;
    }
    if (changed) on_change_();
  });
}

}  // namespace gantry::agent
