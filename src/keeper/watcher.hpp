// SPDX-License-Identifier: Apache-2.0
// The keeper's eyes: which GPUs there are, and who holds what of them, as NVML has it.
#pragma once

#include "base/result.hpp"
#include "keeper/log.hpp"
#include "model/readings.hpp"
#include "sensor/sensor.hpp"
#include "share/share.hpp"
#include "sys/host.hpp"
#include "sys/loop.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gantry::keeper {

enum class Looked : std::uint8_t { AtMemory, AtAll };

class Watcher {
 public:
  struct Callbacks {
    std::function<void()> machine;  // cards() or trouble() are others now
    std::function<void()> asking;   // a picture is taken from now until `picture`
    std::function<void(const model::Readings&, Looked)> picture;
  };

  static Result<std::unique_ptr<Watcher>> open(sys::Loop& loop, const sys::Host& host,
                                               sensor::SensorOptions options, const Log& log,
                                               Callbacks callbacks);
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  const std::vector<share::Card>& cards() const { return cards_; }
  const std::string& trouble() const { return trouble_; }  // why there are none; "" while starting

  // At what processes hold: at once, or right after the picture that is being taken, and never more
  // than 100 times a second.
  void look() { look(Looked::AtMemory); }
  // At their time as well, regularly from now on, or not any more. That is not for every occasion:
  // while the driver tells it, a process that starts CUDA waits.
  void look_every(std::chrono::milliseconds period);
  void rest() { regular_ = {}; }

 private:
  Watcher(sys::Loop& loop, sensor::Sensor sensor, const Log& log, Callbacks callbacks);
  void look(Looked at);
  void look_again();
  void on_sensor();
  void take(const sensor::ViewMessage& message);
  void take(const sensor::ReadingsMessage& message);
  void take(const sensor::StateMessage& message);
  void take(const sensor::EventMessage& message);
  void take(const sensor::KernelChangedMessage& message);

  sys::Loop& loop_;
  sensor::Sensor sensor_;
  const Log& log_;
  Callbacks callbacks_;
  std::vector<share::Card> cards_;
  std::string trouble_;
  bool asked_ = false;
  std::optional<Looked> again_;
  std::chrono::steady_clock::time_point last_{};
  sys::Loop::Watch watch_;
  sys::Loop::Timer regular_;
  sys::Loop::Timer soon_;
};

}  // namespace gantry::keeper
