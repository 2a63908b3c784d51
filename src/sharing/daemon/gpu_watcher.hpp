// SPDX-License-Identifier: Apache-2.0
// Watches the GPUs through NVML: which GPUs exist, and how much of them each process uses.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "gpu/model/readings.hpp"
#include "gpu/nvml_child/nvml_child.hpp"
#include "sharing/policy/share.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gantry::daemon {

enum class ReadingScope : std::uint8_t { MemoryOnly, Everything };

class GpuWatcher {
 public:
  struct Callbacks {
    std::function<void()> machine;  // cards() or trouble() changed
    std::function<void()> asking;   // NVML is read from now until `picture`
    std::function<void(const model::Readings&, ReadingScope)> picture;
  };

  static Result<std::unique_ptr<GpuWatcher>> open(sys::Loop& loop, const sys::Host& host,
                                                  nvml_child::NvmlChildOptions options,
                                                  const Log& log, Callbacks callbacks);
  GpuWatcher(const GpuWatcher&) = delete;
  GpuWatcher& operator=(const GpuWatcher&) = delete;

  const std::vector<policy::GpuCapacity>& cards() const { return cards_; }
  const std::string& trouble() const { return trouble_; }  // why there is no GPU; "" at start

  // Reads the memory that processes use: at once, or right after the reading in progress, but at
  // most 100 times a second.
  void look() { look(ReadingScope::MemoryOnly); }
  // Starts or stops the regular reading of the processes' GPU time. Use it only when needed: while
  // the driver reads it, a process that starts CUDA must wait.
  void poll_every(std::chrono::milliseconds period);
  void rest() { poll_timer_ = {}; }

  // Ends the NVML process, which has the device nodes of every GPU open, until resume(). The cards
  // stay as they were known.
  void release(std::string why) { sensor_.release(std::move(why)); }
  void resume() { sensor_.resume(); }

 private:
  GpuWatcher(sys::Loop& loop, nvml_child::NvmlChild sensor, const Log& log, Callbacks callbacks);
  void look(ReadingScope at);
  void request_again();
  void on_sensor();
  void take(const nvml_child::ViewMessage& message);
  void take(const nvml_child::ReadingsMessage& message);
  void take(const nvml_child::StateMessage& message);
  void take(const nvml_child::EventMessage& message);
  void take(const nvml_child::KernelChangedMessage& message);

  sys::Loop& loop_;
  nvml_child::NvmlChild sensor_;
  const Log& log_;
  Callbacks callbacks_;
  std::vector<policy::GpuCapacity> cards_;
  std::string trouble_;
  bool asked_ = false;
  std::optional<ReadingScope> retry_;
  std::chrono::steady_clock::time_point last_{};
  sys::Loop::Watch watch_;
  sys::Loop::Timer poll_timer_;
  sys::Loop::Timer delayed_request_;
};

}  // namespace gantry::daemon
