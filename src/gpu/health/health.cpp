// SPDX-License-Identifier: Apache-2.0
#include "gpu/health/health.hpp"

#include "gpu/health/words_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::health {
namespace {

constexpr std::int64_t kRelapseWithinSeconds = 3600;
constexpr int kRelapseLimit = 5;
constexpr std::size_t kNoticeLimit = 1000;  // between two calls of take_notices

}  // namespace

Monitor::Monitor(HealthOptions options) : options_(std::move(options)) {}

Monitor::Part* Monitor::find(const model::GpuUuid& gpu) {
  const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) {
    return part.is_card() && part.name.first == gpu;
  });
  return found == parts_.end() ? nullptr : &*found;
}

void Monitor::add_trouble(Part& part, Ailment kind, Trouble trouble, std::int64_t now_s) {
  auto [at, is_new] = part.troubles.try_emplace(kind, std::move(trouble));
  if (!is_new) {
    auto& known = at->second;
    known.good_readings = 0;
    if (trouble.needs >= known.needs) {
      trouble.since_s = known.since_s;
      known = std::move(trouble);
    }
    return;
  }
  at->second.since_s = now_s;
  if (part.troubles.size() > 1) return;
  if (part.recovered_at_s != 0 && now_s - part.recovered_at_s < kRelapseWithinSeconds) {
    part.relapses = std::min(part.relapses + 1, kRelapseLimit);
  } else {
    part.relapses = 0;
  }
}

void Monitor::end(Part& part, Ailment kind, std::int64_t now_s) {
  if (part.troubles.erase(kind) != 0 && part.troubles.empty()) part.recovered_at_s = now_s;
}

void Monitor::good(Part& part, Ailment kind, std::int64_t now_s) {
  const auto found = part.troubles.find(kind);
  if (found == part.troubles.end()) return;
  auto& trouble = found->second;
  if (trouble.good_readings++ == 0) trouble.good_since_s = now_s;
  const auto long_enough = options_.recover_after_s << part.relapses;
  if (trouble.good_readings >= 2 && now_s - trouble.good_since_s >= long_enough)
    end(part, kind, now_s);
}

void Monitor::set_inventory(const model::Inventory& inventory, std::int64_t now_s) {
  std::vector<Part> before;
  before.swap(parts_);
  const auto keep = [&](Name name, std::optional<int> gi, std::optional<int> ci) {
    const auto known = std::find_if(before.begin(), before.end(),
                                    [&](const Part& part) { return part.name == name; });
    Part part;
    if (known != before.end()) {
      part = *known;
    } else {
      part.shown = {.gpu = name.first, .mig = name.second, .since_unix_seconds = now_s};
      if (const auto memory = remembered_.extract(name)) part.troubles = memory.mapped();
    }
    part.name = std::move(name);
    part.gpu_instance = gi;
    part.compute_instance = ci;
    parts_.push_back(std::move(part));
  };
  for (const auto& gpu : inventory.gpus) {
    if (gpu.uuid.text.empty()) continue;
    keep({gpu.uuid, {}}, std::nullopt, std::nullopt);
    for (const auto& mig : gpu.mig.instances) {
      if (!mig.uuid.text.empty())
        keep({gpu.uuid, mig.uuid}, mig.gpu_instance, mig.compute_instance);
    }
    if (inventory.driver.nvml_error.empty()) continue;
    for (const auto& part : before) {  // NVML alone could say that they are gone
      if (!part.is_card() && part.name.first == gpu.uuid)
        keep(part.name, part.gpu_instance, part.compute_instance);
    }
  }
  show(now_s);
}

bool Monitor::hit(const Part& part, const model::GpuEvent& event, Reach reach) const {
  if (!event.gpu.text.empty() && part.name.first != event.gpu) return false;
  if (reach == Reach::Card || !event.gpu_instance) return part.is_card();
  return part.gpu_instance == event.gpu_instance &&
         (!event.compute_instance || part.compute_instance == event.compute_instance);
}

void Monitor::on_event(const model::GpuEvent& event, std::int64_t now_s) {
  const auto meaning = event_meaning(event);
  const bool is_xid = event.kind == model::GpuEventKind::Xid;
  const auto xid = is_xid ? std::optional(static_cast<unsigned>(event.data)) : std::nullopt;
  const bool counts =
      is_xid ? options_.xids.counts(*xid) : !options_.only_xids && meaning.kind >= XidClass::Reset;
  Notice notice{
      .gpu = event.gpu,
      .xid = xid,
      .text = event_sentence(event, meaning),
      .remedy = counts ? remedy_for(meaning.kind, event.gpu) : std::string(meaning.advice),
      .critical = counts,
      .at_unix_s = now_s};
  for (auto& part : parts_) {
    if (!hit(part, event, meaning.reach)) continue;
    notice.mig = part.name.second;
    if (!counts) continue;
    add_trouble(part, Ailment::Event,
                {.needs = meaning.kind,
                 .cause = notice.text,
                 .remedy = remedy_for(meaning.kind, part.name.first),
                 .xid = xid},
                now_s);
  }
  if (event.kind != model::GpuEventKind::MigChanged && notices_.size() < kNoticeLimit)
    notices_.push_back(std::move(notice));
  show(now_s);
}

void Monitor::judge_heat(Part& card, const model::GpuReading& reading, std::int64_t now_s) {
  const bool hot = is_hot(reading);
  if (!hot) {
    card.hot_since_s = 0;
    return good(card, Ailment::Hot, now_s);
  }
  if (card.hot_since_s == 0) card.hot_since_s = now_s;
  if (now_s - card.hot_since_s < options_.hot_after_s) return;
  add_trouble(
      card, Ailment::Hot,
      {.needs = XidClass::Drain,
       .cause = fmt::format(
           "the GPU is too hot{} and slows itself down",
           reading.temperature_celsius ? fmt::format(" ({} C)", *reading.temperature_celsius) : ""),
       .remedy = fmt::format("nvidia-smi -q -d TEMPERATURE -i {}", card.name.first.text)},
      now_s);
}

// What a card says of itself, beside its events.
void Monitor::judge_condition(Part& card, const model::GpuReading& reading, std::int64_t now_s) {
  const auto& gpu = card.name.first;
  if (auto wanted = wanted_action(reading)) {
    add_trouble(card, Ailment::Action,
                {.needs = wanted->needs,
                 .cause = std::move(wanted->cause),
                 .remedy = wanted->needs == XidClass::Watch ? "systemctl restart nvidia-imex"
                                                            : remedy_for(wanted->needs, gpu)},
                now_s);
  } else {
    good(card, Ailment::Action, now_s);
  }
  if (!reading.recovery_action && reading.ecc_uncorrected_volatile.value_or(0) > 0) {
    add_trouble(card, Ailment::Memory,
                {.needs = XidClass::Drain,
                 .cause = fmt::format("{} uncorrectable memory errors since the last reset",
                                      *reading.ecc_uncorrected_volatile),
                 .remedy = remedy_for(XidClass::Drain, gpu)},
                now_s);
  } else {
    good(card, Ailment::Memory, now_s);
  }
  if (reading.remap_failure.value_or(0) != 0) {
    add_trouble(card, Ailment::Remapping,
                {.needs = XidClass::Replace,
                 .cause = "the card has no spare memory row left for a broken one",
                 .remedy = remedy_for(XidClass::Replace, gpu)},
                now_s);
  } else {
    good(card, Ailment::Remapping, now_s);
  }
  judge_heat(card, reading, now_s);
}

void Monitor::judge_reading(Part& card, const model::GpuReading& reading, std::int64_t now_s) {
  const auto& gpu = card.name.first;
  if (!reading.lost.empty()) {
    return add_trouble(card, Ailment::Lost,
                       {.needs = XidClass::Reboot,
                        .cause = fmt::format("the GPU does not answer: {}", reading.lost),
                        .remedy = remedy_for(XidClass::Reboot, gpu)},
                       now_s);
  }
  good(card, Ailment::Lost, now_s);
  if (!options_.only_xids) judge_condition(card, reading, now_s);
  const bool was_reset = counted_down(card.energy, reading.energy_millijoules) ||
                         counted_down(card.uncorrected, reading.ecc_uncorrected_volatile);
  card.energy = reading.energy_millijoules;
  card.uncorrected = reading.ecc_uncorrected_volatile;
  const bool tells_action = reading.recovery_action.has_value();
  for (auto& part : parts_) {
    if (part.name.first != gpu) continue;
    if (was_reset) end(part, Ailment::Event, now_s);
    // Without a recovery action only a reset, a reload or a reboot shows that it is over.
    if (tells_action && reading.recovery_action == model::RecoveryAction::None &&
        !reading.reset_required)
      good(part, Ailment::Event, now_s);
  }
}

void Monitor::on_readings(const model::Readings& readings, std::int64_t now_s) {
  silent_.reset();
  for (auto& part : parts_) {
    if (!part.is_card()) continue;
    const auto reading =
        std::find_if(readings.gpus.begin(), readings.gpus.end(),
                     [&](const model::GpuReading& r) { return r.uuid == part.name.first; });
    end(part, Ailment::Driver, now_s);
    if (reading != readings.gpus.end()) {
      judge_reading(part, *reading, now_s);
    } else {
      add_trouble(part, Ailment::Lost,
                  {.needs = XidClass::Reboot,
                   .cause = "the driver does not list this GPU any more",
                   .remedy = remedy_for(XidClass::Reboot, part.name.first)},
                  now_s);
    }
  }
  show(now_s);
}

void Monitor::on_silence(const std::string& why, std::int64_t now_s) {
  if (!silent_) silent_ = {why, now_s};
  silent_->first = why;
  on_time(now_s);
}

void Monitor::on_time(std::int64_t now_s) {
  if (silent_ && now_s - silent_->second >= options_.silence_after_s) {
    for (auto& part : parts_) {
      if (!part.is_card()) continue;
      add_trouble(part, Ailment::Driver,
                  {.needs = XidClass::Reset,
                   .cause = fmt::format("NVML does not answer: {}", silent_->first),
                   .remedy = "gantry doctor"},
                  now_s);
    }
  }
  show(now_s);
}

void Monitor::on_driver_gone(const std::string& why, std::int64_t now_s) {
  silent_.reset();
  for (auto& part : parts_) {
    // A driver that is loaded again has reset its cards.
    for (const auto kind : {Ailment::Event, Ailment::Action, Ailment::Memory, Ailment::Lost})
      part.troubles.erase(kind);
    part.energy.reset();
    part.uncorrected.reset();
    if (!part.is_card()) continue;
    add_trouble(part, Ailment::Driver,
                {.needs = XidClass::Reset,
                 .cause = why.empty() ? "the driver is not loaded" : why,
                 .remedy = "gantry doctor"},
                now_s);
  }
  show(now_s);
}

model::DeviceHealth Monitor::verdict(const Part& part) const {
  const Trouble* worst = nullptr;
  const auto weigh = [&](const Troubles& troubles) {
    for (const auto& [kind, trouble] : troubles) {
      if (worst == nullptr || trouble.needs > worst->needs) worst = &trouble;
    }
  };
  if (!part.is_card()) {
    for (const auto& other : parts_) {
      if (other.is_card() && other.name.first == part.name.first) weigh(other.troubles);
    }
  }
  weigh(part.troubles);
  model::DeviceHealth health{.gpu = part.name.first, .mig = part.name.second};
  if (worst == nullptr) return health;
  health.usable = false;
  health.cause = worst->cause;
  health.remedy = worst->remedy;
  if (worst->xid) health.xid = static_cast<int>(*worst->xid);
  health.since_unix_seconds = worst->since_s;
  return health;
}

void Monitor::show(std::int64_t now_s) {
  for (auto& part : parts_) {
    auto now = verdict(part);
    const bool turned = now.usable != part.shown.usable;
    now.since_unix_seconds = turned ? now_s : part.shown.since_unix_seconds;
    if (now == part.shown) continue;
    if (turned || !now.usable) changes_.push_back({part.shown, now});
    part.shown = std::move(now);
  }
}

std::vector<model::DeviceHealth> Monitor::health() const {
  std::vector<model::DeviceHealth> list;
  list.reserve(parts_.size());
  for (const auto& part : parts_) list.push_back(part.shown);
  return list;
}

bool Monitor::wants_readings() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return !part.troubles.empty() || part.hot_since_s != 0;
  });
}

model::DeviceHealth health_of(const std::vector<model::DeviceHealth>& health,
                              const model::OfferedDevice& device) {
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
