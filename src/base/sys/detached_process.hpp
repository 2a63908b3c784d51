// SPDX-License-Identifier: Apache-2.0
// A process that may hang in the kernel, and is not waited for.
#pragma once

#include "base/core/result.hpp"

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace gantry::sys {

// Runs `work` in a process that is not a child of ours: init collects it whenever it ends. `work`
// may make system calls only, because another thread may have held a lock during the fork. It has
// our descriptors, and no signal of ours but SIGALRM reaches it. Returns its number, or the errno
// of the fork that failed.
Result<pid_t> start_detached(const std::function<void()>& work);

// Why a process did not answer in time, as /proc/PID/stat tells.
enum class LateReason : std::uint8_t {
  InKernel,   // it waits there, or has computed all the time
  NotRunning  // it waits for a processor, or is stopped: the machine is overloaded or was paused
};
LateReason late_reason(std::string_view stat, std::chrono::milliseconds deadline);
LateReason late_reason(pid_t process, std::chrono::milliseconds deadline);

// "X did not return within 2000 ms: it is stuck in the kernel", or that it did not get to run. With
// the command that tells more.
Error late(std::string_view doing, std::chrono::milliseconds deadline, pid_t process);

// Until when a process must answer. One that did not get to run has the
// same time once more.
class AnswerDeadline {
 public:
  explicit AnswerDeadline(std::chrono::milliseconds deadline);
  std::chrono::milliseconds left() const;  // 0: the time is over
  // When the time is over: true, once, if the process did not get to run. It has the time again.
  bool extend(pid_t process);
  // After which the process should end by itself.
  static std::chrono::milliseconds longest(std::chrono::milliseconds deadline);

 private:
  std::chrono::milliseconds deadline_;
  std::chrono::steady_clock::time_point until_;
  bool extended_ = false;
};

}  // namespace gantry::sys
