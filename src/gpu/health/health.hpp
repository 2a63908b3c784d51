// SPDX-License-Identifier: Apache-2.0
// Whether each card and each MIG instance may be used, decided from events, readings and what the
// kernel says; with a cause, a remedy, and a way back. Health belongs to the card and its
// instances; whatever is offered on them (replicas, shares) follows. Pure: the clock is an
// argument.
#pragma once

#include "base/core/result.hpp"
#include "gpu/health/xid.hpp"
#include "gpu/model/advertised.hpp"
#include "gpu/model/readings.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::health {

struct HealthOptions {
  XidPolicy xids;
  // What the driver would have done, memory errors and heat are passed over: as with GKE's plugin,
  // XIDs alone decide. A GPU or a driver that is gone is gone.
  bool only_xids = false;
  // Good readings for so long, and at least two of them, bring a GPU back; twice as long after each
  // relapse within an hour, 32 times at most.
  std::int64_t recover_after_s = 10;
  std::int64_t hot_after_s = 60;      // hardware thermal slowdown for so long takes a GPU away
  std::int64_t silence_after_s = 30;  // NVML may be away for so long (a restart, an upgrade)
};

// Something worth telling: an XID (harmless ones too), or another event of the driver.
struct HealthNotice {
  model::GpuUuid gpu;  // empty text: the driver did not say which
  model::GpuUuid mig;  // the instance it names
  std::optional<unsigned> xid;
  std::string text;       // one sentence
  std::string remedy;     // "" where there is nothing to do
  bool critical = false;  // it takes a GPU away
  std::int64_t at_unix_s = 0;
  bool operator==(const HealthNotice&) const = default;
};

struct HealthChange {
  model::DeviceHealth before, after;
  bool operator==(const HealthChange&) const = default;
};

// What is wrong with a card or an instance, one of each kind at a time.
enum class FaultKind : std::uint8_t {
  Event,      // an XID or another event that counts
  Action,     // the driver wants a reset, a reboot, ...
  Lost,       // it does not answer
  Memory,     // uncorrected errors, where the driver has no recovery action to tell
  Remapping,  // no spare row is left
  Hot,
  Driver  // none is loaded, or NVML does not answer
};

class HealthMonitor {
 public:
  explicit HealthMonitor(HealthOptions options = {});
  // From the next event and reading on; what is out of use comes back in its own way.
  void set_options(HealthOptions options) { options_ = std::move(options); }

  // Which GPUs and instances there are; call it first and whenever that changes. Those that are
  // gone are forgotten with their troubles. A view without NVML (driver.nvml_error) does not make
  // instances vanish.
  void set_inventory(const model::Inventory& inventory, std::int64_t now_s);
  void on_event(const model::GpuEvent& event, std::int64_t now_s);
  void on_readings(const model::Readings& readings, std::int64_t now_s);
  // NVML does not answer, with the reason; ended by the next readings.
  void on_nvml_unavailable(const std::string& why, std::int64_t now_s);
  void on_driver_gone(const std::string& why, std::int64_t now_s);
  void on_time(std::int64_t now_s);  // what only time decides

  // Cards, each followed by its instances, in the inventory's order.
  std::vector<model::DeviceHealth> health() const;
  // Something is wrong that readings could end: ask for them every few seconds.
  bool wants_readings() const;

  // Since the last call.
  std::vector<HealthChange> take_changes() { return std::exchange(changes_, {}); }
  std::vector<HealthNotice> take_notices() { return std::exchange(notices_, {}); }

  // A small text that survives a restart of the agent. What a reboot cures is forgotten when
  // `boot_id` is another one. Corrupt text is an error and changes nothing. Restore before the
  // first set_inventory.
  std::string saved(std::string_view boot_id) const;
  Status restore(std::string_view text, std::string_view boot_id);

 private:
  struct Fault {
    XidClass needs = XidClass::Reset;
    std::string cause, remedy;
    std::optional<unsigned> xid;
    std::int64_t since_s = 0;
    std::int64_t good_since_s = 0;
    int good_readings = 0;  // in a row
  };
  using Faults = std::map<FaultKind, Fault>;
  using Name = std::pair<model::GpuUuid, model::GpuUuid>;  // card, instance

  struct Device {  // a card, or an instance of one
    Name name;
    std::optional<int> gpu_instance, compute_instance;
    Faults faults;
    model::DeviceHealth published;
    int relapses = 0;
    std::int64_t recovered_at_s = 0;
    // Of the last readings; a card that was reset counts from the start again.
    std::optional<std::uint64_t> energy, uncorrected;
    std::int64_t hot_since_s = 0;  // 0: it is not
    bool is_card() const { return name.second.text.empty(); }
  };

  Device* find(const model::GpuUuid& gpu);
  void add_fault(Device& device, FaultKind kind, Fault fault, std::int64_t now_s);
  void judge_reading(Device& card, const model::GpuReading& reading, std::int64_t now_s);
  void judge_condition(Device& card, const model::GpuReading& reading, std::int64_t now_s);
  void judge_heat(Device& card, const model::GpuReading& reading, std::int64_t now_s);
  void good(Device& device, FaultKind kind, std::int64_t now_s);  // this one seems over
  void end(Device& device, FaultKind kind, std::int64_t now_s);   // this one is over
  bool hit(const Device& device, const model::GpuEvent& event, XidScope scope) const;
  model::DeviceHealth assess(const Device& device) const;
  void show(std::int64_t now_s);  // notes what has changed

  HealthOptions options_;
  std::vector<Device> devices_;
  std::map<Name, Faults> remembered_;  // restored, for parts that have not been seen yet
  std::optional<std::pair<std::string, std::int64_t>> silent_;  // why, since
  std::vector<HealthChange> changes_;
  std::vector<HealthNotice> notices_;
};

// The health of what is offered: its card's, or else its instance's. Usable when nobody knows it.
model::DeviceHealth health_of(const std::vector<model::DeviceHealth>& health,
                              const model::AdvertisedDevice& device);

}  // namespace gantry::health
