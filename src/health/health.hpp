// SPDX-License-Identifier: Apache-2.0
// Whether each card and each MIG instance may be used, decided from events, readings and what the
// kernel says; with a cause, a remedy, and a way back. Health belongs to the card and its
// instances; whatever is offered on them (replicas, shares) follows. Pure: the clock is an
// argument.
#pragma once

#include "base/result.hpp"
#include "health/xid.hpp"
#include "model/offer.hpp"
#include "model/readings.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::health {

struct HealthOptions {
  XidPolicy xids;
  std::int64_t recover_after_s = 10;  // good readings for so long, and at least two of them
  std::int64_t hot_after_s = 60;      // hardware thermal slowdown for so long takes a GPU away
  std::int64_t silence_after_s = 30;  // NVML may be away for so long (a restart, an upgrade)
};

// Something worth telling: an XID (harmless ones too), a GPU that became usable or not.
struct Notice {
  model::GpuUuid gpu;
  model::GpuUuid mig;
  std::optional<unsigned> xid;  // set: an XID event, whatever it changed
  std::string text;             // one sentence
  std::string remedy;
  bool critical = false;  // of the kind that withdraws a GPU
  std::int64_t at_unix_s = 0;
  bool operator==(const Notice&) const = default;
};

struct Change {
  model::DeviceHealth before, after;
  bool operator==(const Change&) const = default;
};

class Monitor {
 public:
  explicit Monitor(HealthOptions options = {});

  // Which GPUs and instances there are. Those that are gone are forgotten, their troubles with
  // them, except that a whole GPU which vanished and comes back is looked at as recovering.
  void set_inventory(const model::Inventory& inventory, std::int64_t now_s);
  void on_event(const model::GpuEvent& event, std::int64_t now_s);
  void on_readings(const model::Readings& readings, std::int64_t now_s);
  // NVML does not answer (any more), with the reason; answered by the next readings.
  void on_silence(const std::string& why, std::int64_t now_s);
  void on_driver_gone(const std::string& why, std::int64_t now_s);
  void on_time(std::int64_t now_s);  // what only time decides

  // Cards, each followed by its instances, in the inventory's order.
  std::vector<model::DeviceHealth> health() const;

  // Since the last call.
  std::vector<Change> take_changes();
  std::vector<Notice> take_notices();

  // A small text that survives a restart of the agent. What a reboot cures is forgotten when
  // `boot_id` is another one. Corrupt text is an error and changes nothing.
  std::string saved(std::string_view boot_id) const;
  Status restore(std::string_view text, std::string_view boot_id);

 private:
  struct Trouble {
    XidClass needs = XidClass::Reset;
    std::string cause, remedy;
    std::optional<unsigned> xid;
    std::int64_t since_s = 0;
    std::int64_t good_since_s = -1;  // -1: no good reading since
    int good_readings = 0;
    bool operator==(const Trouble&) const = default;
  };
  struct Part {  // a card or an instance of one
    model::GpuUuid gpu, mig;
    std::optional<int> gpu_instance, compute_instance;
    std::map<std::string, Trouble> troubles;  // by kind: "xid", "lost", "ecc", "hot", "driver", ...
    model::DeviceHealth shown;
  };
  struct Card;

  HealthOptions options_;
  std::vector<Part> parts_;
  std::vector<Change> changes_;
  std::vector<Notice> notices_;
};

// The health of what is offered: its card's, or else its instance's. Usable when nobody knows it.
model::DeviceHealth health_of(const std::vector<model::DeviceHealth>& health,
                              const model::OfferedDevice& device);

}  // namespace gantry::health
