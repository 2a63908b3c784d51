// SPDX-License-Identifier: Apache-2.0
#include "node/agent/machine_watcher.hpp"

#include "base/core/clock.hpp"
#include "base/core/text.hpp"
#include "base/core/unix_time.hpp"
#include "base/sys/replace_file.hpp"

#include <sys/epoll.h>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;
constexpr std::string_view kMachineWatcherComponent = "health";
constexpr std::string_view kSavedHealth = "/run/gantry/health.json";
// For states that change only with time, and for the kernel's list of GPUs: a bit shorter than the
// sensor's own interval, so that one wake-up serves both.
constexpr auto kBeat = 1'650ms;
constexpr int kBeatsBetweenReadings = 6;  // while every GPU is healthy; every beat if one is not
constexpr auto kLookedAtFor = 5min;       // full readings continue for this time after a scrape
constexpr auto kFreshEnough = 1s;

// Two views of one machine differ in these parts, which are not offered or prepared.
model::Inventory without_readings(model::Inventory machine) {
  for (auto& gpu : machine.gpus) {
    gpu.telemetry = {};
    gpu.processes.clear();
    gpu.health.reasons.clear();
    if (gpu.health.state != model::HealthState::Lost) gpu.health.state = model::HealthState::Ok;
  }
  return machine;
}

}  // namespace

MachineWatcher::MachineWatcher(sys::Loop& loop, const sys::Host& host, nvml_child::NvmlChild sensor,
                               health::HealthOptions health, const Log& log,
                               metrics::AgentCounters& counters, Callbacks callbacks)
    : loop_(loop),
      host_(host),
      sensor_(std::move(sensor)),
      monitor_(std::move(health)),
      log_(log),
      counters_(counters),
      callbacks_(std::move(callbacks)),
      looked_(Clock::now() - 2 * kLookedAtFor) {}

Result<std::unique_ptr<MachineWatcher>> MachineWatcher::open(sys::Loop& loop, const sys::Host& host,
                                                             nvml_child::NvmlChildOptions sensor,
                                                             health::HealthOptions health,
                                                             const Log& log,
                                                             metrics::AgentCounters& counters,
                                                             Callbacks callbacks) {
  const bool released = !sensor.released.empty();
  GANTRY_TRY(auto child, nvml_child::NvmlChild::start(host, std::move(sensor)));
  std::unique_ptr<MachineWatcher> watcher(new MachineWatcher(
      loop, host, std::move(child), std::move(health), log, counters, std::move(callbacks)));
  if (released) watcher->released_for_.emplace(kAtStart);
  GANTRY_CHECK(watcher->start());
  return watcher;
}

Status MachineWatcher::start() {
  if (auto boot = host_.read("/proc/sys/kernel/random/boot_id"); boot.ok())
    boot_id_ = std::string(trim(*boot));
  if (auto text = host_.read(kSavedHealth); text.ok()) {
    if (auto restored = monitor_.restore(*text, boot_id_); !restored.ok())
      log_.warning(kMachineWatcherComponent, "saved health is ignored",
                   {{"file", kSavedHealth}, {"err", restored.error()}});
    saved_ = *std::move(text);
  }
  GANTRY_TRY(watch_, loop_.watch(sensor_.fd(), EPOLLIN, [this](std::uint32_t) { on_sensor(); }));
  beat_ = loop_.every(kBeat, [this] { on_heartbeat(); });
  ahead_ = probe::prefetch(host_);  // while NVML starts
  return {};
}

void MachineWatcher::on_sensor() {
  take_messages();
  settle();
}

void MachineWatcher::take_messages() {
  for (auto& message : sensor_.on_readable())
    std::visit([this](auto& part) { take(part); }, message);
}

void MachineWatcher::take(nvml_child::ViewMessage& message) {
  const auto ahead = std::exchange(ahead_, nullptr);
  auto inventory = ahead ? probe::complete_inventory(host_, std::move(message.nvml), *ahead)
                         : probe::complete_inventory(host_, std::move(message.nvml));
  if (!inventory.ok())
    return log_.error(kMachineWatcherComponent, "cannot read the inventory",
                      {{"err", inventory.error()}});
  if (!inventory->driver.nvml_error.empty()) return report_without_nvml(*inventory);
  machine_known_ = true;
  monitor_.set_inventory(*inventory, unix_now());
  judge_computing(*inventory);
  const auto before = std::exchange(described_, without_readings(*inventory));
  if (std::exchange(rechecking_, false) && before == described_) return;
  ++counters_.inventory_changes;
  callbacks_.machine(*std::move(inventory));
  ask(nvml_child::ReadingDepth::Full);  // so that the first scrape has everything
}

void MachineWatcher::judge_computing(const model::Inventory& inventory) {
  const auto facts = health::read_compute_facts(host_, inventory);
  uvm_loaded_ = facts.uvm_loaded;
  monitor_.set_obstacles(inventory, health::find_compute_obstacles(inventory, facts), unix_now());
}

// An obstacle can come and go while the list of GPUs stays: a module is loaded or unloaded, the
// fabric becomes ready. Only /proc/devices is read while all GPUs can compute.
void MachineWatcher::check_computing() {
  if (!machine_known_ || rechecking_) return;
  const bool changed = health::read_compute_facts(host_, {}).uvm_loaded != uvm_loaded_;
  if (!changed && !monitor_.wants_obstacles()) return;
  rechecking_ = true;
  sensor_.request_view();
}

void MachineWatcher::take(nvml_child::ReadingsMessage& message) {
  const std::chrono::duration<double> took = Clock::now() - asked_;
  counters_.readings_seconds.add(took.count());
  monitor_.on_readings(message.readings, unix_now());
  readings_ = std::move(message.readings);
}

void MachineWatcher::take(nvml_child::EventMessage& message) {
  const auto& event = message.event;
  if (event.kind == model::GpuEventKind::Xid) {
    const auto xid = static_cast<unsigned>(event.data);
    ++counters_.xids[{event.gpu, xid}];
    counters_.last_xid[event.gpu] = xid;
  }
  monitor_.on_event(event, unix_now());
  if (event.kind == model::GpuEventKind::MigChanged) sensor_.request_view();
  ask(nvml_child::ReadingDepth::Vital);  // which action the driver asks for
}

void MachineWatcher::take(nvml_child::StateMessage& message) {
  const auto why = LogField::unless_empty("why", message.why);
  switch (message.state) {
    case nvml_child::ChildState::Starting:
      ++counters_.sensor_starts;
      start_failed_ = false;
      break;
    case nvml_child::ChildState::Running:
    case nvml_child::ChildState::Released: break;
    case nvml_child::ChildState::NoDriver:
      log_.warning(kMachineWatcherComponent, "there is no NVIDIA driver", {why});
      monitor_.on_driver_gone(message.why, unix_now());
      machine_without_nvml(message.why);
      return;
    case nvml_child::ChildState::BackingOff:
      ++counters_.sensor_failures;
      log_.warning(kMachineWatcherComponent, "NVML does not answer, trying again later", {why});
      monitor_.on_nvml_unavailable(message.why, unix_now());
      if (!start_failed_) machine_without_nvml(message.why);
      return;
  }
  log_.detail(1, kMachineWatcherComponent, "NVML process changed its state",
              {{"state", to_string(message.state)}, why});
}

void MachineWatcher::take(nvml_child::KernelChangedMessage& /*message*/) {
  log_.info(kMachineWatcherComponent, "the kernel's list of GPUs changed");
  sensor_.request_view();
}

// The child ended without an answer, or there is no driver: only the kernel knows the GPUs.
void MachineWatcher::machine_without_nvml(const std::string& why) {
  if (machine_known_) return;
  probe::NvmlView none{.inventory = {}, .failure = NVML_ERROR_UNKNOWN};
  none.inventory.driver.nvml_error = why.empty() ? "NVML does not answer" : why;
  auto inventory = probe::complete_inventory(host_, std::move(none));
  if (!inventory.ok())
    return log_.error(kMachineWatcherComponent, "cannot read the inventory",
                      {{"err", inventory.error()}});
  report_without_nvml(*inventory);
}

// A machine that NVML has described stays as it is: the health monitor decides when silence makes
// its GPUs unhealthy.
void MachineWatcher::report_without_nvml(const model::Inventory& seen) {
  start_failed_ = true;
  if (machine_known_) return;
  monitor_.set_inventory(seen, unix_now());
  callbacks_.no_nvml(seen);
}

void MachineWatcher::release(std::string_view who, std::string why) {
  released_for_.emplace(who);
  rechecking_ = false;  // the next view is reported in any case
  sensor_.release(std::move(why));
}

bool MachineWatcher::resume(std::string_view who) {
  const auto found = released_for_.find(who);
  if (found == released_for_.end()) return false;
  released_for_.erase(found);
  if (released_for_.empty()) sensor_.resume();
  return true;
}

void MachineWatcher::ask(nvml_child::ReadingDepth depth) {
  asked_ = Clock::now();
  sensor_.request_readings(depth);
}

void MachineWatcher::request_full_readings() {
  looked_ = Clock::now();
  if (Clock::now() - asked_ > kFreshEnough) ask(nvml_child::ReadingDepth::Full);
}

void MachineWatcher::on_heartbeat() {
  take_messages();
  monitor_.on_time(unix_now());
  const bool rare = ++beats_ % kBeatsBetweenReadings == 0;
  if (rare) check_computing();
  if (rare || monitor_.wants_readings()) {
    const bool looked_at = Clock::now() - looked_ < kLookedAtFor;
    ask(looked_at ? nvml_child::ReadingDepth::Full : nvml_child::ReadingDepth::Vital);
  }
  settle();
}

void MachineWatcher::settle() {
  for (const auto& notice : monitor_.take_notices()) callbacks_.notice(notice);
  const auto changes = monitor_.take_changes();
  for (const auto& change : changes) ++counters_.health_changes[change.after.gpu];
  if (!changes.empty()) callbacks_.health();
  auto text = monitor_.saved(boot_id_);
  if (text == saved_) return;
  auto written =
      sys::replace_file(host_.outside(kSavedHealth), text, 0644, sys::Durability::Volatile);
  if (!written.ok())
    return log_.warning(kMachineWatcherComponent, "cannot save the health",
                        {{"err", written.error()}});
  saved_ = std::move(text);
}

}  // namespace gantry::agent
