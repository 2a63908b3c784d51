// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP as a request to end, for a command that has to undo what it began.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/stop_signal.hpp"

#include <atomic>
#include <string>

namespace gantry::sys {

class Termination {
 public:
  void request(int signal);  // also from a signal handler; the first one counts
  int signal() const { return signal_.load(std::memory_order_acquire); }  // 0: nobody asked
  bool requested() const { return signal() != 0; }
  std::string name() const;              // "SIGTERM"; "" if nobody asked
  int fd() const { return stop_.fd(); }  // readable once requested
  Error error() const;                   // "stopped by SIGTERM"
  Status check() const;                  // the same, if somebody asked

 private:
  StopSignal stop_;
  std::atomic<int> signal_ = 0;
};

// While it exists, the first of the signals is a request. The next one ends this process at once,
// with the status 128 + its number. A signal that is ignored (nohup) stays ignored. A process has
// at most one; its children have the default again, after a fork and after exec.
class CaughtTermination {
 public:
  CaughtTermination();
  ~CaughtTermination();
  CaughtTermination(const CaughtTermination&) = delete;
  CaughtTermination& operator=(const CaughtTermination&) = delete;

  const Termination& termination() const { return termination_; }

 private:
  Termination termination_;
};

}  // namespace gantry::sys
