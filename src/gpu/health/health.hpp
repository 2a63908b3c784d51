// SPDX-License-Identifier: Apache-2.0
// Decides whether each card and each MIG instance may be used, from events, readings and the
// kernel's view, with a cause, a remedy and rules for recovery. Replicas and shares have the health
// of their card or instance. No I/O: the time is an argument.
#pragma once

#include "base/core/result.hpp"
#include "gpu/health/compute.hpp"
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
  // Ignores the driver's recovery action, memory errors and heat: only XIDs decide, as in GKE's
  // plugin. A lost GPU or driver still counts.
  bool only_xids = false;
  // A GPU becomes healthy after good readings for this time, at least two of them. The time doubles
  // after each relapse within an hour, up to 32 times.
  std::int64_t recover_after_s = 10;
  std::int64_t hot_after_s = 60;  // hardware thermal slowdown for this time makes a GPU unhealthy
  std::int64_t silence_after_s = 30;  // NVML may be silent for this time (restart, upgrade)
};

// An event to report: an XID (also a harmless one), or another event of the driver.
struct HealthNotice {
  model::GpuUuid gpu;  // empty text: the driver did not say which
  model::GpuUuid mig;  // the instance of the event
  std::optional<unsigned> xid;
  std::string text;       // one sentence
  std::string remedy;     // "" if there is nothing to do
  bool critical = false;  // it makes a GPU unhealthy
  std::int64_t at_unix_s = 0;
  bool operator==(const HealthNotice&) const = default;
};

struct HealthChange {
  model::DeviceHealth before, after;
  bool operator==(const HealthChange&) const = default;
};

// The faults of a card or an instance; it has at most one of each kind.
enum class FaultKind : std::uint8_t {
  Event,      // an XID or another event that counts
  Action,     // the driver wants a reset, a reboot, ...
  Lost,       // it does not answer
  Memory,     // uncorrected errors, if the driver reports no recovery action
  Remapping,  // no spare memory row is left
  Hot,
  Driver,  // not loaded, or NVML does not answer
  Compute  // it answers and cannot run CUDA programs
};

class HealthMonitor {
 public:
  explicit HealthMonitor(HealthOptions options = {});
  // Takes effect at the next event and reading. Existing faults stay until they end by their own
  // rules.
  void set_options(HealthOptions options) { options_ = std::move(options); }

  // Sets the GPUs and instances. Call it first and whenever they change. Removed ones are forgotten
  // with their faults. An inventory without NVML (driver.nvml_error) does not remove instances, and
  // its new cards are unhealthy until NVML answers.
  void set_inventory(const model::Inventory& inventory, std::int64_t now_s);
  // Sets what keeps GPUs of that inventory from computing; GPUs that are not named can compute.
  void set_obstacles(const model::Inventory& inventory,
                     const std::vector<ComputeObstacle>& obstacles, std::int64_t now_s);
  void on_event(const model::GpuEvent& event, std::int64_t now_s);
  void on_readings(const model::Readings& readings, std::int64_t now_s);
  // Call it when NVML does not answer, with the reason. The next readings end this state.
  void on_nvml_unavailable(const std::string& why, std::int64_t now_s);
  void on_driver_gone(const std::string& why, std::int64_t now_s);
  void on_time(std::int64_t now_s);  // applies the rules that depend on time alone

  // Cards, each followed by its instances, in the inventory's order.
  std::vector<model::DeviceHealth> health() const;
  // True if there is a fault that readings could end: request them every few seconds.
  bool wants_readings() const;
  // True if a GPU answers and cannot compute: look for its obstacles again from time to time.
  bool wants_obstacles() const;

  // The changes since the last call.
  std::vector<HealthChange> take_changes() { return std::exchange(changes_, {}); }
  std::vector<HealthNotice> take_notices() { return std::exchange(notices_, {}); }

  // A small text to restore the state after a restart of the agent. If `boot_id` changed, faults
  // that a reboot cures are dropped. A corrupt text is an error and changes nothing. Restore before
  // the first set_inventory.
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
    // From the last readings; a reset of the card sets these counters to zero.
    std::optional<std::uint64_t> energy, uncorrected;
    std::int64_t hot_since_s = 0;  // 0: not hot
    bool is_card() const { return name.second.text.empty(); }
  };

  Device* find(const model::GpuUuid& gpu);
  void add_fault(Device& device, FaultKind kind, Fault fault, std::int64_t now_s);
  void judge_reading(Device& card, const model::GpuReading& reading, std::int64_t now_s);
  void judge_condition(Device& card, const model::GpuReading& reading, std::int64_t now_s);
  void judge_heat(Device& card, const model::GpuReading& reading, std::int64_t now_s);
  void good(Device& device, FaultKind kind, std::int64_t now_s);  // one good reading
  void end(Device& device, FaultKind kind, std::int64_t now_s);   // the fault has ended
  void judge_driver(Device& card, const std::string& nvml_error, bool is_new, std::int64_t now_s);
  bool hit(const Device& device, const model::GpuEvent& event, XidScope scope) const;
  model::DeviceHealth assess(const Device& device) const;
  void show(std::int64_t now_s);  // records the changes

  HealthOptions options_;
  std::vector<Device> devices_;
  std::map<Name, Faults> remembered_;  // restored faults of devices that have not been seen yet
  std::optional<std::pair<std::string, std::int64_t>> silent_;  // why, since
  std::vector<HealthChange> changes_;
  std::vector<HealthNotice> notices_;
};

// The health of an advertised device: that of its card if the card is unhealthy, else that of its
// instance. Usable if unknown.
model::DeviceHealth health_of(const std::vector<model::DeviceHealth>& health,
                              const model::AdvertisedDevice& device);

}  // namespace gantry::health
