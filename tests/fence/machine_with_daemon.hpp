// SPDX-License-Identifier: Apache-2.0
// For tests: a simulated machine with a share daemon in a separate process, like `gantry share
// serve`, and processes behind the fence of its shares.
#pragma once

#include "fence/share_under_test.hpp"
#include "sharing/daemon/client.hpp"
#include "support/machine.hpp"

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>

namespace gantry::fence::test {

inline constexpr const char* kSpinPtx =
    ".version 3.0\n.target sm_30\n.address_size 64\n"
    ".visible .entry spin(.param .u64 nanoseconds)\n{ ret; }\n";

class MachineWithDaemon {
 public:
  explicit MachineWithDaemon(const std::string& machine = "h200");
  ~MachineWithDaemon();
  MachineWithDaemon(const MachineWithDaemon&) = delete;
  MachineWithDaemon& operator=(const MachineWithDaemon&) = delete;

  const sys::Host& host() const { return host_; }
  std::string driver() const;  // the simulated libcuda itself
  daemon::Client client() const;
  void start_daemon();
  void kill_daemon();
  void signal_daemon(int signal) const;  // SIGSTOP, SIGCONT

  // Creates a share that lives as long as this object; missing values get their defaults.
  daemon::ShareState make(const policy::ShareText& text);
  // The fence library of that share, for a process to open.
  std::string fence(const std::string& share) const {
    return fence_directories_.at(share).path("libcuda.so.1");
  }

 private:
  gantry::test::Machine machine_;
  sys::Host host_;
  pid_t daemon_ = -1;
  std::map<std::string, gantry::test::FenceDirectory> fence_directories_;  // by share
};

// A counter that one process writes and another reads.
class SharedCounter {
 public:
  SharedCounter();
  ~SharedCounter();
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  std::uint64_t value() const { return __atomic_load_n(value_, __ATOMIC_ACQUIRE); }
  void add(std::uint64_t more) { __atomic_fetch_add(value_, more, __ATOMIC_ACQ_REL); }

 private:
  std::uint64_t* value_;
};

// Starts a process that launches kernels of `kernel_us` forever, with a few always waiting. Counts
// their time in microseconds.
pid_t start_busy_process(const std::string& libcuda, unsigned kernel_us, SharedCounter& counter);
void end(pid_t pid);

}  // namespace gantry::fence::test
