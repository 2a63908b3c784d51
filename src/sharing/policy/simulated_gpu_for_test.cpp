// SPDX-License-Identifier: Apache-2.0
#include "sharing/policy/simulated_gpu_for_test.hpp"

#include <algorithm>
#include <numeric>

namespace gantry::policy {

void SimulatedGpu::at(Time when, std::function<void()> what) {
  events_.push({std::max(when, now_), ++events_made_, std::move(what)});
}

void SimulatedGpu::run_until(Time end) {
  apply_gate_changes();
  while (!events_.empty() && events_.top().when <= end) {
    auto event = std::move(const_cast<Event&>(events_.top()));  // which ends in a moment
    events_.pop();
    while (next_sample_ <= event.when) sample();
    now_ = event.when;
    event.what();
    apply_gate_changes();
    look();
  }
  while (next_sample_ <= end) sample();
  now_ = end;
  gpu_progress();
}

void SimulatedGpu::sample() {
  now_ = std::max(now_, next_sample_);
  gpu_progress();
  for (auto& [id, tenant] : tenants_) tenant.samples.push_back(tenant.busy);
  next_sample_ += kSample;
}

void SimulatedGpu::add(TenantId id, const TimePolicy& time_policy, const TestProgram& program) {
  auto& tenant = tenants_[id];
  tenant = {};
  tenant.program = program;
  tenant.gate = {Gate::Open, 0};
  tenant.first_sample = next_sample_;
  controller_.add(id, time_policy, now_);
  tenant.gate = controller_.gate(id);
  controller_.set_kernel_time(id, program.claim > Time{0} ? program.claim : program.kernel);
  at(std::max(program.start, now_), [this, id] { request(id); });
  if (program.stop != Time::max()) at(program.stop, [this, id] { pump(id); });
}

void SimulatedGpu::remove(TenantId id) {
  gpu_progress();
  tenants_.erase(id);
  if (running_ == id) running_.reset();
  ++gpu_event_;  // its planned events are cancelled
  controller_.remove(id, now_);
  run_gpu();
}

void SimulatedGpu::change(TenantId id, const TimePolicy& time_policy) {
  controller_.change(id, time_policy, now_);
}

// Sends the gates to the fences and plans the next tick for when the scheduler wants it.
void SimulatedGpu::apply_gate_changes() {
  for (const auto& order : controller_.take_gate_changes()) {
    at(now_ + kOrder, [this, order] {
      const auto found = tenants_.find(order.tenant);
      if (found == tenants_.end()) return;
      found->second.gate = order.gate;
      pump(order.tenant);
    });
  }
  const auto deadline = controller_.deadline().value_or(Time::max());
  if (deadline == tick_at_ || deadline == Time::max()) return;
  tick_at_ = deadline;
  at(deadline, [this, deadline] {
    if (tick_at_ != deadline) return;
    tick_at_ = Time::max();
    ++ticks_;
    controller_.tick(now_);
  });
}

void SimulatedGpu::request(TenantId id) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end() || now_ >= found->second.program.stop) return;
  auto& tenant = found->second;
  if (tenant.program.period > Time{0}) {
    tenant.backlog += tenant.program.request;
    tenant.requests.emplace_back(now_, tenant.program.request);
    if (!tenant.program.closed_loop) next_request(id, tenant.program);
  } else {
    tenant.backlog = Time::max();
  }
  pump(id);
}

void SimulatedGpu::next_request(TenantId id, const TestProgram& program) {
  const auto jitter = program.jitter.count();
  const Time later{jitter > 0 ? static_cast<std::int64_t>(random_()) % jitter : 0};
  at(now_ + program.period + later, [this, id] { request(id); });
}

Time SimulatedGpu::work_of(const Tenant& tenant) const {
  return std::accumulate(tenant.launched.begin(), tenant.launched.end(), Time{0});
}

bool SimulatedGpu::may_launch(const Tenant& tenant) const {
  if (tenant.backlog <= Time{0}) return false;
  const bool open = tenant.gate.gate == Gate::Open || !tenant.program.obeys;
  if (open) return tenant.launched.empty() || work_of(tenant) < tenant.program.queue;
  if (tenant.gate.gate == Gate::Shut) return false;
  const bool next_to_nothing = work_of(tenant) + tenant.program.kernel <= kShort;
  return next_to_nothing || (tenant.launched.empty() && now_ >= tenant.one_ready);
}

void SimulatedGpu::launch(Tenant& tenant) {
  const bool greedy = tenant.program.period == Time{0};
  const auto kernel = std::min(tenant.program.kernel, tenant.backlog);
  tenant.launched.push_back(kernel);
  if (!greedy) tenant.backlog -= kernel;
}

// The fence: launches what it may and reports what it must.
void SimulatedGpu::pump(TenantId id) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return;
  auto& tenant = found->second;
  gpu_progress();  // work that is launched now was not there before
  if (now_ >= tenant.program.stop) tenant.backlog = Time{0};
  while (may_launch(tenant)) launch(tenant);
  tell_state(id, tenant);
  const bool has_work = tenant.backlog > Time{0};
  const bool waits = has_work && tenant.launched.empty() && tenant.gate.gate == Gate::Shut;
  if (waits) tenant.waiting_since = std::min(tenant.waiting_since, now_);
  if (!waits) {
    if (tenant.waiting_since < now_) {
      tenant.longest_wait = std::max(tenant.longest_wait, now_ - tenant.waiting_since);
    }
    tenant.waiting_since = Time::max();
  }
  run_gpu();
}

void SimulatedGpu::tell_state(TenantId id, Tenant& tenant) {
  const bool busy = tenant.backlog > Time{0} || !tenant.launched.empty();
  if (busy && !tenant.reported) {
    tenant.reported = true;
    report([this, id](Time when) { controller_.active(id, when); });
  }
  const bool empty = tenant.launched.empty() || !tenant.program.truthful;
  const bool shut = tenant.gate.gate == Gate::Shut;
  const bool speaks = !tenant.program.silent;
  if (busy && shut && empty && speaks && tenant.drain_told != tenant.gate.turn) {
    tenant.drain_told = tenant.gate.turn;
    report([this, id, turn = tenant.gate.turn](Time when) { controller_.drained(id, turn, when); });
  }
  if (!busy && tenant.reported) {
    tenant.reported = false;
    report([this, id](Time when) { controller_.idle(id, when); });
  }
}

// A report carries the time of its event and arrives a little later.
void SimulatedGpu::report(std::function<void(Time)> what) {
  at(now_ + kReport, [this, when = now_, what = std::move(what)] {
    what(when);
    controller_.tick(now_);
  });
}

void SimulatedGpu::gpu_progress() {
  if (running_ && now_ > std::max(progress_at_, ready_at_)) {
    auto& tenant = tenants_.at(*running_);
    const auto done = now_ - std::max(progress_at_, ready_at_);
    if (!tenant.launched.empty()) {
      tenant.launched.front() -= done;
      tenant.busy += done;
    }
  }
  progress_at_ = now_;
}

// The hardware alternates between tenants with work; there is no switch if the same one continues.
bool SimulatedGpu::next_tenant() {
  auto found = running_ ? tenants_.upper_bound(*running_) : tenants_.begin();
  for (std::size_t i = 0; i < tenants_.size(); ++i, ++found) {
    if (found == tenants_.end()) found = tenants_.begin();
    if (found->second.launched.empty()) continue;
    if (running_ != found->first) {
      ready_at_ = now_ + kSwitch;
      ++switches_;
    }
    running_ = found->first;
    slice_end_ = std::max(now_, ready_at_) + kSlice;
    return true;
  }
  return false;
}

void SimulatedGpu::run_gpu() {
  gpu_progress();
  const bool runs = running_ && !tenants_.at(*running_).launched.empty();
  if ((!runs || now_ >= slice_end_) && !next_tenant()) return;
  const auto& tenant = tenants_.at(*running_);
  const auto ends = std::max(now_, ready_at_) + tenant.launched.front();
  const auto next = std::max(std::min(ends, slice_end_), now_ + 1ns);
  const auto number = ++gpu_event_;
  at(next, [this, number] {
    if (number != gpu_event_) return;
    gpu_progress();
    const auto id = *running_;
    auto& current = tenants_.at(id);
    if (current.launched.front() <= Time{0}) {
      finish_kernel(id, current);
    } else {
      run_gpu();
    }
  });
}

void SimulatedGpu::finish_kernel(TenantId id, Tenant& tenant) {
  tenant.launched.pop_front();
  tenant.one_ready = now_ + kLaunch;
  if (tenant.gate.gate == Gate::One) at(tenant.one_ready, [this, id] { pump(id); });
  if (tenant.program.period > Time{0} && !tenant.requests.empty()) {
    auto& [arrival, rest] = tenant.requests.front();
    rest -= tenant.program.kernel;
    if (rest <= Time{0}) {
      tenant.latencies.emplace_back(arrival, now_ - arrival);
      tenant.requests.pop_front();
      if (tenant.program.closed_loop) next_request(id, tenant.program);
    }
  }
  pump(id);
}

double SimulatedGpu::percent(TenantId id, Time from, Time to) const {
  const auto& tenant = tenants_.at(id);
  const auto sample_at = [&](Time when) {
    const auto index = (std::max(when, tenant.first_sample) - tenant.first_sample) / kSample;
    const auto last = static_cast<std::int64_t>(tenant.samples.size()) - 1;
    return tenant.samples.at(static_cast<std::size_t>(std::min<std::int64_t>(index, last)));
  };
  return 100.0 * static_cast<double>((sample_at(to) - sample_at(from)).count()) /
         static_cast<double>((to - from).count());
}

std::pair<double, double> SimulatedGpu::extremes(TenantId id, Time window, Time from) const {
  std::pair<double, double> found{1000, -1};
  for (auto begin = from; begin + window <= now_; begin += kSample) {
    const double part = percent(id, begin, begin + window);
    found = {std::min(found.first, part), std::max(found.second, part)};
  }
  return found;
}

std::vector<Time> SimulatedGpu::latencies(TenantId id, Time from) const {
  std::vector<Time> times;
  for (const auto& [arrival, length] : tenants_.at(id).latencies) {
    if (arrival >= from) times.push_back(length);
  }
  std::sort(times.begin(), times.end());
  return times;
}

Time SimulatedGpu::longest_wait(TenantId id) const {
  const auto& tenant = tenants_.at(id);
  if (tenant.waiting_since >= now_) return tenant.longest_wait;
  return std::max(tenant.longest_wait, now_ - tenant.waiting_since);
}

}  // namespace gantry::policy
