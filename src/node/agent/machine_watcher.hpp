// SPDX-License-Identifier: Apache-2.0
// Follows changes of the machine: turns the messages of the NVML child into inventories, readings
// and health.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "gpu/health/health.hpp"
#include "gpu/nvml_child/nvml_child.hpp"
#include "gpu/probe/snapshot.hpp"
#include "node/metrics/snapshot.hpp"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::agent {

class MachineWatcher {
 public:
  struct Callbacks {
    // Called with a complete inventory when NVML has answered first, and whenever GPUs, MIG
    // instances or the driver change.
    std::function<void(model::Inventory)> machine;
    // Called if NVML does not start, until it has answered once. `seen` is what the kernel shows;
    // its driver.nvml_error says why.
    std::function<void(const model::Inventory& seen)> no_nvml;
    std::function<void()> health;  // a device became healthy or unhealthy
    std::function<void(const health::HealthNotice&)> notice;
  };

  static Result<std::unique_ptr<MachineWatcher>> open(sys::Loop& loop, const sys::Host& host,
                                                      nvml_child::NvmlChildOptions sensor,
                                                      health::HealthOptions health, const Log& log,
                                                      metrics::AgentCounters& counters,
                                                      Callbacks callbacks);

  const model::Readings& readings() const { return readings_; }
  std::vector<model::DeviceHealth> health() const { return monitor_.health(); }
  const std::string& boot_id() const { return boot_id_; }
  bool driver_answers() const { return sensor_.state() == nvml_child::ChildState::Running; }

  void set_health_options(health::HealthOptions options) {
    monitor_.set_options(std::move(options));
  }

  // Ends the NVML process, which has the device nodes of every GPU open, until everybody who asked
  // for it has called resume(). The machine stays as it was known. If the options of the sensor say
  // `released`, kAtStart has asked.
  static constexpr std::string_view kAtStart = "start";
  void release(std::string_view who, std::string why);
  // Returns whether `who` had asked. If nobody else has, the machine is described again.
  bool resume(std::string_view who);

  // Requests full readings soon, and regularly for a while, because a client reads the metrics.
  void request_full_readings();

 private:
  MachineWatcher(sys::Loop& loop, const sys::Host& host, nvml_child::NvmlChild sensor,
                 health::HealthOptions health, const Log& log, metrics::AgentCounters& counters,
                 Callbacks callbacks);
  Status start();
  void on_sensor();
  void take_messages();
  void take(nvml_child::ViewMessage& message);
  void take(nvml_child::ReadingsMessage& message);
  void take(nvml_child::EventMessage& message);
  void take(nvml_child::StateMessage& message);
  void take(nvml_child::KernelChangedMessage& message);
  void machine_without_nvml(const std::string& why);
  void report_without_nvml(const model::Inventory& seen);
  void judge_computing(const model::Inventory& inventory);
  void check_computing();
  void ask(nvml_child::ReadingDepth depth);
  void on_heartbeat();
  void settle();  // reports what changed, and saves it

  sys::Loop& loop_;
  const sys::Host& host_;
  nvml_child::NvmlChild sensor_;
  health::HealthMonitor monitor_;
  const Log& log_;
  metrics::AgentCounters& counters_;
  Callbacks callbacks_;
  std::shared_ptr<const probe::PrefetchedFacts> ahead_;  // used until the first view
  model::Readings readings_;
  model::Inventory described_;  // by NVML last, without readings
  bool uvm_loaded_ = true;
  bool rechecking_ = false;  // a view was requested only to judge the GPUs again
  std::set<std::string, std::less<>> released_for_;
  std::string boot_id_;
  std::string saved_;  // the health that is saved on disk
  sys::Loop::Watch watch_;
  sys::Loop::Timer beat_;
  std::chrono::steady_clock::time_point asked_;
  std::chrono::steady_clock::time_point looked_;  // the last time that a client read the metrics
  bool machine_known_ = false;                    // NVML has answered once
  bool start_failed_ = false;  // the child that runs or ran last said that NVML does not start
  int beats_ = 0;
};

}  // namespace gantry::agent
