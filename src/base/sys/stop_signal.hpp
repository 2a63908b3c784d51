// SPDX-License-Identifier: Apache-2.0
// How one thread ends another that waits: for time, for a descriptor, or for an answer from far
// away. Raised once and for all.
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
  // False when it was raised before the time was over.
  bool sleep(std::chrono::milliseconds time) const;
  int fd() const { return event_.get(); }  // readable once raised, for poll and for http::Client

 private:
  UniqueFd event_;
  std::atomic<bool> raised_ = false;
};

}  // namespace gantry::sys
