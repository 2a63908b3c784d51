// SPDX-License-Identifier: Apache-2.0
// The keeper's eyes: which GPUs there are, and who holds what of them, as NVML has it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "gpu/model/readings.hpp"
#include "gpu/nvml_child/sensor.hpp"
#include "sharing/daemon/log.hpp"
#include "sharing/policy/share.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gantry::daemon {

enum class Looked : std::uint8_t { AtMemory, AtAll };

class Watcher {
 public:
  struct Callbacks {
    std::function<void()> machine;  // cards() or trouble() are others now
    std::function<void()> asking;   // a picture is taken from now until `picture`
    std::function<void(const model::Readings&, Looked)> picture;
  };

  static Result<std::unique_ptr<Watcher>> open(sys::Loop& loop, const sys::Host& host,
                                               nvml_child::SensorOptions options, const Log& log,
                                               Callbacks callbacks);
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  const std::vector<policy::Card>& cards() const { return cards_; }
  const std::string& trouble() const { return trouble_; }  // why there are none; "" while starting

  // At what processes hold: at once, or right after the picture that is being taken, and never more
  // than 100 times a second.
  void look() { look(Looked::AtMemory); }
  // At their time as well, regularly from now on, or not any more. That is not for every occasion:
  // while the driver tells it, a process that starts CUDA waits.
  void look_every(std::chrono::milliseconds period);
  void rest() { regular_ = {}; }

 private:
  Watcher(sys::Loop& loop, nvml_child::Sensor sensor, const Log& log, Callbacks callbacks);
  void look(Looked at);
  void look_again();
  void on_sensor();
  void take(const nvml_child::ViewMessage& message);
  void take(const nvml_child::ReadingsMessage& message);
  void take(const nvml_child::StateMessage& message);
  void take(const nvml_child::EventMessage& message);
  void take(const nvml_child::KernelChangedMessage& message);

  sys::Loop& loop_;
  nvml_child::Sensor sensor_;
  const Log& log_;
  Callbacks callbacks_;
  std::vector<policy::Card> cards_;
  std::string trouble_;
  bool asked_ = false;
  std::optional<Looked> again_;
  std::chrono::steady_clock::time_point last_{};
  sys::Loop::Watch watch_;
  sys::Loop::Timer regular_;
  sys::Loop::Timer soon_;
};

}  // namespace gantry::daemon
