// SPDX-License-Identifier: Apache-2.0
#include "gpu/health/health.hpp"

#include "gpu/health/event_rules_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::health {
namespace {

constexpr std::int64_t kRelapseWithinSeconds = 3600;
constexpr int kRelapseLimit = 5;
constexpr std::size_t kNoticeLimit = 1000;  // between two calls of take_notices

}  // namespace

HealthMonitor::HealthMonitor(HealthOptions options) : options_(std::move(options)) {}

HealthMonitor::Device* HealthMonitor::find(const model::GpuUuid& gpu) {
  const auto found = std::find_if(devices_.begin(), devices_.end(), [&](const Device& device) {
    return device.is_card() && device.name.first == gpu;
  });
  return found == devices_.end() ? nullptr : &*found;
}

void HealthMonitor::add_fault(Device& device, FaultKind kind, Fault fault, std::int64_t now_s) {
  auto [at, is_new] = device.faults.try_emplace(kind, std::move(fault));
  if (!is_new) {
    auto& known = at->second;
    known.good_readings = 0;
    if (fault.needs >= known.needs) {
      fault.since_s = known.since_s;
      known = std::move(fault);
    }
    return;
  }
  at->second.since_s = now_s;
  if (device.faults.size() > 1) return;
  if (device.recovered_at_s != 0 && now_s - device.recovered_at_s < kRelapseWithinSeconds) {
    device.relapses = std::min(device.relapses + 1, kRelapseLimit);
  } else {
    device.relapses = 0;
  }
}

void HealthMonitor::end(Device& device, FaultKind kind, std::int64_t now_s) {
  if (device.faults.erase(kind) != 0 && device.faults.empty()) device.recovered_at_s = now_s;
}

void HealthMonitor::good(Device& device, FaultKind kind, std::int64_t now_s) {
  const auto found = device.faults.find(kind);
  if (found == device.faults.end()) return;
  auto& fault = found->second;
  if (fault.good_readings++ == 0) fault.good_since_s = now_s;
  const auto long_enough = options_.recover_after_s << device.relapses;
  if (fault.good_readings >= 2 && now_s - fault.good_since_s >= long_enough)
    end(device, kind, now_s);
}

// A card that NVML has never described cannot be used. A known one may wait for a restart of NVML.
void HealthMonitor::judge_driver(Device& card, const std::string& nvml_error, bool is_new,
                                 std::int64_t now_s) {
  if (nvml_error.empty()) return end(card, FaultKind::Driver, now_s);
  if (!is_new) return;
  add_fault(card, FaultKind::Driver,
            {.needs = XidClass::Reset,
             .cause = fmt::format("NVML does not start: {}", nvml_error),
             .remedy = "gantry doctor"},
            now_s);
}

void HealthMonitor::set_inventory(const model::Inventory& inventory, std::int64_t now_s) {
  std::vector<Device> before;
  before.swap(devices_);
  const auto& nvml_error = inventory.driver.nvml_error;
  const auto keep = [&](Name name, std::optional<int> gi, std::optional<int> ci) {
    const auto known = std::find_if(before.begin(), before.end(),
                                    [&](const Device& device) { return device.name == name; });
    Device device;
    if (known != before.end()) {
      device = *known;
    } else {
      device.published = {.gpu = name.first, .mig = name.second, .since_unix_seconds = now_s};
      if (const auto memory = remembered_.extract(name)) device.faults = memory.mapped();
    }
    device.name = std::move(name);
    device.gpu_instance = gi;
    device.compute_instance = ci;
    if (device.is_card()) judge_driver(device, nvml_error, known == before.end(), now_s);
    devices_.push_back(std::move(device));
  };
  for (const auto& gpu : inventory.gpus) {
    if (gpu.uuid.text.empty()) continue;
    keep({gpu.uuid, {}}, std::nullopt, std::nullopt);
    for (const auto& mig : gpu.mig.instances) {
      if (!mig.uuid.text.empty())
        keep({gpu.uuid, mig.uuid}, mig.gpu_instance, mig.compute_instance);
    }
    if (nvml_error.empty()) continue;
    for (const auto& device : before) {  // only NVML can tell that they are gone
      if (!device.is_card() && device.name.first == gpu.uuid)
        keep(device.name, device.gpu_instance, device.compute_instance);
    }
  }
  show(now_s);
}

// Silence of the driver and lost GPUs are judged by readings, which know sooner when they end.
void HealthMonitor::set_obstacles(const model::Inventory& inventory,
                                  const std::vector<ComputeObstacle>& obstacles,
                                  std::int64_t now_s) {
  using enum ComputeObstacleKind;
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i) {
    auto* card = find(inventory.gpus[i].uuid);
    if (card == nullptr) continue;
    const auto* obstacle = obstacle_of(obstacles, i);
    const bool counts = obstacle != nullptr && !options_.only_xids &&
                        obstacle->kind != DriverNotLoaded && obstacle->kind != NvmlSilent &&
                        obstacle->kind != GpuLost;
    if (counts) {
      add_fault(*card, FaultKind::Compute,
                {.needs = XidClass::Reset, .cause = obstacle->cause, .remedy = obstacle->remedy},
                now_s);
    } else {
      end(*card, FaultKind::Compute, now_s);
    }
  }
  show(now_s);
}

bool HealthMonitor::hit(const Device& device, const model::GpuEvent& event, XidScope scope) const {
  if (!event.gpu.text.empty() && device.name.first != event.gpu) return false;
  if (scope == XidScope::Card || !event.gpu_instance) return device.is_card();
  return device.gpu_instance == event.gpu_instance &&
         (!event.compute_instance || device.compute_instance == event.compute_instance);
}

void HealthMonitor::on_event(const model::GpuEvent& event, std::int64_t now_s) {
  const auto meaning = event_meaning(event);
  const bool is_xid = event.kind == model::GpuEventKind::Xid;
  const auto xid = is_xid ? std::optional(static_cast<unsigned>(event.data)) : std::nullopt;
  const bool counts =
      is_xid ? options_.xids.counts(*xid) : !options_.only_xids && meaning.kind >= XidClass::Reset;
  HealthNotice notice{
      .gpu = event.gpu,
      .xid = xid,
      .text = describe(event, meaning),
      .remedy = counts ? remedy_for(meaning.kind, event.gpu) : std::string(meaning.advice),
      .critical = counts,
      .at_unix_s = now_s};
  for (auto& device : devices_) {
    if (!hit(device, event, meaning.scope)) continue;
    notice.mig = device.name.second;
    if (!counts) continue;
    add_fault(device, FaultKind::Event,
              {.needs = meaning.kind,
               .cause = notice.text,
               .remedy = remedy_for(meaning.kind, device.name.first),
               .xid = xid},
              now_s);
  }
  if (event.kind != model::GpuEventKind::MigChanged && notices_.size() < kNoticeLimit)
    notices_.push_back(std::move(notice));
  show(now_s);
}

void HealthMonitor::judge_heat(Device& card, const model::GpuReading& reading, std::int64_t now_s) {
  const bool hot = is_hot(reading);
  if (!hot) {
    card.hot_since_s = 0;
    return good(card, FaultKind::Hot, now_s);
  }
  if (card.hot_since_s == 0) card.hot_since_s = now_s;
  if (now_s - card.hot_since_s < options_.hot_after_s) return;
  add_fault(
      card, FaultKind::Hot,
      {.needs = XidClass::Drain,
       .cause = fmt::format(
           "the GPU is too hot{} and slows itself down",
           reading.temperature_celsius ? fmt::format(" ({} C)", *reading.temperature_celsius) : ""),
       .remedy = fmt::format("nvidia-smi -q -d TEMPERATURE -i {}", card.name.first.text)},
      now_s);
}

// Judges the readings of a card; events are judged elsewhere.
void HealthMonitor::judge_condition(Device& card, const model::GpuReading& reading,
                                    std::int64_t now_s) {
  const auto& gpu = card.name.first;
  if (auto wanted = requested_action(reading)) {
    add_fault(card, FaultKind::Action,
              {.needs = wanted->needs,
               .cause = std::move(wanted->cause),
               .remedy = wanted->needs == XidClass::Watch ? "systemctl restart nvidia-imex"
                                                          : remedy_for(wanted->needs, gpu)},
              now_s);
  } else {
    good(card, FaultKind::Action, now_s);
  }
  if (!reading.recovery_action && reading.ecc_uncorrected_volatile.value_or(0) > 0) {
    add_fault(card, FaultKind::Memory,
              {.needs = XidClass::Drain,
               .cause = fmt::format("{} uncorrectable memory errors since the last reset",
                                    *reading.ecc_uncorrected_volatile),
               .remedy = remedy_for(XidClass::Drain, gpu)},
              now_s);
  } else {
    good(card, FaultKind::Memory, now_s);
  }
  if (reading.remap_failure.value_or(0) != 0) {
    add_fault(card, FaultKind::Remapping,
              {.needs = XidClass::Replace,
               .cause = "the card has no spare memory row left for a broken one",
               .remedy = remedy_for(XidClass::Replace, gpu)},
              now_s);
  } else {
    good(card, FaultKind::Remapping, now_s);
  }
  judge_heat(card, reading, now_s);
}

void HealthMonitor::judge_reading(Device& card, const model::GpuReading& reading,
                                  std::int64_t now_s) {
  const auto& gpu = card.name.first;
  if (!reading.lost.empty()) {
    return add_fault(card, FaultKind::Lost,
                     {.needs = XidClass::Reboot,
                      .cause = fmt::format("the GPU does not answer: {}", reading.lost),
                      .remedy = remedy_for(XidClass::Reboot, gpu)},
                     now_s);
  }
  good(card, FaultKind::Lost, now_s);
  if (!options_.only_xids) judge_condition(card, reading, now_s);
  const bool was_reset = counter_was_reset(card.energy, reading.energy_millijoules) ||
                         counter_was_reset(card.uncorrected, reading.ecc_uncorrected_volatile);
  card.energy = reading.energy_millijoules;
  card.uncorrected = reading.ecc_uncorrected_volatile;
  const bool tells_action = reading.recovery_action.has_value();
  for (auto& device : devices_) {
    if (device.name.first != gpu) continue;
    if (was_reset) end(device, FaultKind::Event, now_s);
    // Without a recovery action, only a reset, a reload or a reboot shows that the fault has ended.
    if (tells_action && reading.recovery_action == model::RecoveryAction::None &&
        !reading.reset_required)
      good(device, FaultKind::Event, now_s);
  }
}

void HealthMonitor::on_readings(const model::Readings& readings, std::int64_t now_s) {
  silent_.reset();
  for (auto& device : devices_) {
    if (!device.is_card()) continue;
    const auto reading =
        std::find_if(readings.gpus.begin(), readings.gpus.end(),
                     [&](const model::GpuReading& r) { return r.uuid == device.name.first; });
    end(device, FaultKind::Driver, now_s);
    if (reading != readings.gpus.end()) {
      judge_reading(device, *reading, now_s);
    } else {
      add_fault(device, FaultKind::Lost,
                {.needs = XidClass::Reboot,
                 .cause = "the driver does not list this GPU any more",
                 .remedy = remedy_for(XidClass::Reboot, device.name.first)},
                now_s);
    }
  }
  show(now_s);
}

void HealthMonitor::on_nvml_unavailable(const std::string& why, std::int64_t now_s) {
  if (!silent_) silent_ = {why, now_s};
  silent_->first = why;
  on_time(now_s);
}

void HealthMonitor::on_time(std::int64_t now_s) {
  if (silent_ && now_s - silent_->second >= options_.silence_after_s) {
    for (auto& device : devices_) {
      if (!device.is_card()) continue;
      add_fault(device, FaultKind::Driver,
                {.needs = XidClass::Reset,
                 .cause = fmt::format("NVML does not answer: {}", silent_->first),
                 .remedy = "gantry doctor"},
                now_s);
    }
  }
  show(now_s);
}

void HealthMonitor::on_driver_gone(const std::string& why, std::int64_t now_s) {
  silent_.reset();
  for (auto& device : devices_) {
    // Loading the driver again resets its cards.
    for (const auto kind :
         {FaultKind::Event, FaultKind::Action, FaultKind::Memory, FaultKind::Lost})
      device.faults.erase(kind);
    device.energy.reset();
    device.uncorrected.reset();
    if (!device.is_card()) continue;
    add_fault(device, FaultKind::Driver,
              {.needs = XidClass::Reset,
               .cause = why.empty() ? "the driver is not loaded" : why,
               .remedy = "gantry doctor"},
              now_s);
  }
  show(now_s);
}

model::DeviceHealth HealthMonitor::assess(const Device& device) const {
  const Fault* worst = nullptr;
  const auto weigh = [&](const Faults& faults) {
    for (const auto& [kind, fault] : faults) {
      if (worst == nullptr || fault.needs > worst->needs) worst = &fault;
    }
  };
  if (!device.is_card()) {
    for (const auto& other : devices_) {
      if (other.is_card() && other.name.first == device.name.first) weigh(other.faults);
    }
  }
  weigh(device.faults);
  model::DeviceHealth health{.gpu = device.name.first, .mig = device.name.second};
  if (worst == nullptr) return health;
  health.usable = false;
  health.cause = worst->cause;
  health.remedy = worst->remedy;
  if (worst->xid) health.xid = static_cast<int>(*worst->xid);
  health.since_unix_seconds = worst->since_s;
  return health;
}

void HealthMonitor::show(std::int64_t now_s) {
  for (auto& device : devices_) {
    auto now = assess(device);
    const bool turned = now.usable != device.published.usable;
    now.since_unix_seconds = turned ? now_s : device.published.since_unix_seconds;
    if (now == device.published) continue;
    if (turned || !now.usable) changes_.push_back({device.published, now});
    device.published = std::move(now);
  }
}

std::vector<model::DeviceHealth> HealthMonitor::health() const {
  std::vector<model::DeviceHealth> list;
  list.reserve(devices_.size());
  for (const auto& device : devices_) list.push_back(device.published);
  return list;
}

bool HealthMonitor::wants_readings() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const Device& device) {
    return !device.faults.empty() || device.hot_since_s != 0;
  });
}

bool HealthMonitor::wants_obstacles() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const Device& device) {
    return device.faults.contains(FaultKind::Compute);
  });
}

model::DeviceHealth health_of(const std::vector<model::DeviceHealth>& health,
                              const model::AdvertisedDevice& device) {
  const model::DeviceHealth* best = nullptr;
  for (const auto& one : health) {
    if (one.gpu != device.gpu) continue;
    if (one.mig.text.empty() && (best == nullptr || !one.usable)) best = &one;
    if (!device.mig.text.empty() && one.mig == device.mig && (best == nullptr || best->usable))
      best = &one;
  }
  if (best != nullptr) return *best;
  return {.gpu = device.gpu, .mig = device.mig};
}

}  // namespace gantry::health
