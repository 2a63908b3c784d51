// SPDX-License-Identifier: Apache-2.0
// For tests: a share's directory and the daemon's side of the protocol, in this process. A fence
// library that is copied there uses this directory instead of FENCE_DIRECTORY.
#pragma once

#include "gpu/abi/fence.h"
#include "support/fence_directory.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gantry::fence::test {

class Host {
 public:
  explicit Host(std::uint32_t gpu_count = 1);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const std::string& directory() const { return place_.directory(); }
  std::string path(const std::string& name) const { return place_.path(name); }

  // Puts a driver library there under the name by which the fence opens it.
  void real(const std::string& name, const std::string& file) const { place_.link(name, file); }
  // Copies a fence library into the directory.
  std::string install(const std::string& fence) const;

  // Starts and stops the daemon; its pages stay unchanged.
  void start();
  void stop();
  std::uint32_t attached() const { return attached_.load(); }
  void refuse(FenceRefusal refusal) { refusal_ = refusal; }

  FenceLimits& limits() { return *limits_; }
  FenceUsage& usage() { return *usage_; }
  FenceUsageRow& row(std::uint32_t gpu, std::uint32_t slot);
  FenceProcess& process(std::uint32_t slot);  // counts it as a slot in use
  void beat();

  // Writes a gate as the daemon does, and wakes the waiting threads.
  void set_gate(std::uint32_t gpu, FenceGate state, std::uint32_t turn);
  // The reports of the workers, in order of arrival.
  std::vector<FenceReport> reports() const;
  // Waits until this many of these have arrived since the beginning; false after 10 s.
  bool reported(FenceEvent event, std::size_t times = 1) const;
  std::size_t count(FenceEvent event) const;
  // Waits for something to become true; false after 10 s.
  static bool eventually(const std::function<bool()>& condition);

 private:
  void serve(int listener);
  bool answer(int client);
  bool take_report(int client);

  gantry::test::FenceDirectory place_;
  int limits_fd_ = -1;
  int usage_fd_ = -1;
  int stop_ = -1;
  FenceLimits* limits_ = nullptr;
  FenceUsage* usage_ = nullptr;
  std::uint64_t usage_size_ = 0;
  std::atomic<FenceRefusal> refusal_ = FENCE_ACCEPTED;
  std::atomic<std::uint32_t> attached_ = 0;
  std::uint32_t next_slot_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable came_;
  std::vector<FenceReport> reports_;
  std::thread thread_;
};

}  // namespace gantry::fence::test
