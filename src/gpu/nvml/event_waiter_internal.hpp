// SPDX-License-Identifier: Apache-2.0
// Waits for the driver's events in a separate thread, because NVML has no descriptor to poll.
#pragma once

#include "base/sys/unique_fd.hpp"
#include "gpu/nvml/message_writer_internal.hpp"
#include "gpu/nvml/nvml.hpp"
#include "gpu/nvml/readings_internal.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

namespace gantry::nvml {

class EventWaiter {
 public:
  EventWaiter(const Nvml& nvml, MessageWriter& talk, std::chrono::milliseconds wait);

  // Sets the devices, from the next wait on.
  void watch(const std::vector<Device>& devices);
  void start();  // never joined: the process ends with _exit

  int fd() const { return wake_.get(); }  // readable when the MIG layout of a card has changed
  bool take_layout_change();
  // The time since NVML last returned; 0 if no thread is waiting.
  std::uint32_t wait_age_ms() const;

 private:
  void run();
  bool renew();  // creates the event set again; false if the driver has no events
  nvmlReturn_t wait(nvmlEventData_t& data) const;
  void tell(const nvmlEventData_t& data);

  const Nvml& nvml_;
  MessageWriter& writer_;
  std::chrono::milliseconds wait_;
  sys::UniqueFd wake_;
  std::mutex lock_;
  std::vector<Device> devices_;      // under lock_
  unsigned devices_generation_ = 0;  // under lock_
  unsigned set_generation_ = 0;
  nvmlEventSet_t set_ = nullptr;
  std::atomic<std::int64_t> waiting_since_ms_{0};  // steady clock; 0: not waiting
};

}  // namespace gantry::nvml
