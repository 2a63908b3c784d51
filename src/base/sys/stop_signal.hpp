// SPDX-License-Identifier: Apache-2.0
// Lets one thread stop another that waits for a time, a descriptor or a network answer. It can be
// raised only once and is never reset.
#pragma once

#include "base/sys/unique_fd.hpp"

#include <atomic>
#include <chrono>

namespace gantry::sys {

class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  void raise();  // from any thread
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  // Returns false if it was raised before the time had passed.
  bool sleep(std::chrono::milliseconds time) const;
  int fd() const { return event_.get(); }  // readable once raised, for poll and for http::Client

 private:
  UniqueFd event_;
  std::atomic<bool> raised_ = false;
};

}  // namespace gantry::sys
