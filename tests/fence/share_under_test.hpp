// SPDX-License-Identifier: Apache-2.0
// For tests: a share of a simulated machine's GPUs. The host side has the share daemon's real pages
// and socket, in a thread of this process. The other side has the installed fence library, in which
// only the directory name differs, in front of the simulated driver.
#pragma once

#include "base/sys/loop.hpp"
#include "sharing/daemon/attached_processes.hpp"
#include "sharing/daemon/share_socket.hpp"
#include "sharing/daemon/shared_pages.hpp"
#include "sim/libcuda/cuda_under_test.hpp"
#include "support/fence_directory.hpp"
#include "support/machine.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace gantry::fence::test {

using sim::cuda::Api;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;
inline constexpr std::uint64_t kGranule = 2 * kMiB;

// A library by its path, as a program opens it.
class CudaLibrary : public Api {
 public:
  explicit CudaLibrary(const std::string& file) : CudaLibrary(open(file)) {}
  void* symbol(const char* name) const { return ::dlsym(handle_, name); }
  template <class Function>
  Function* get(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  explicit CudaLibrary(void* handle)
      : Api([handle](const char* name) { return ::dlsym(handle, name); }), handle_(handle) {}
  static void* open(const std::string& file);
  void* handle_;
};

// A value that processes share.
class SharedCount {
 public:
  SharedCount()
      : value_(static_cast<std::atomic<std::uint64_t>*>(
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedCount() { ::munmap(value_, 4096); }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;
  std::atomic<std::uint64_t>& operator*() const { return *value_; }

 private:
  std::atomic<std::uint64_t>* value_;
};

class ShareUnderTest {
 public:
  struct Options {
    std::string machine = "h200";
    std::uint64_t memory_limit = UINT64_MAX;  // of each GPU
    std::uint64_t context_estimate = 0;
    std::uint64_t queue_ns = 0;  // if time is limited
    std::uint32_t flags = FENCE_CONTEXT_FREE;
    std::vector<std::uint32_t> gpus = {0};  // of the machine, in the share's order
  };
  ShareUnderTest() : ShareUnderTest(Options{}) {}
  explicit ShareUnderTest(const Options& options);
  ~ShareUnderTest();
  ShareUnderTest(const ShareUnderTest&) = delete;
  ShareUnderTest& operator=(const ShareUnderTest&) = delete;

  std::string fence() const { return fence_directory_.path("libcuda.so.1"); }
  std::string driver() const { return fence_directory_.path("cuda"); }
  const std::string& directory() const { return fence_directory_.directory(); }

  // Ends the daemon without notice, or starts it again with new pages.
  void stop_daemon();
  void start_daemon();

  void set_limit(std::uint64_t bytes, std::uint32_t gpu = 0);
  void set_overhead(std::uint64_t bytes, std::uint32_t gpu = 0);
  void set_flags(std::uint32_t flags);

  daemon::ProcessUsage usage(std::uint32_t slot, std::uint32_t gpu = 0);
  std::uint64_t held(std::uint32_t gpu = 0);  // of all processes together
  std::uint32_t processes();
  std::uint32_t reports(FenceEvent event);
  // The largest sum of all rows, read continuously.
  std::uint64_t watch_until(const std::function<bool()>& done, std::uint32_t gpu = 0);

  // Runs `work` in a new process; its result is the exit status. The daemon's thread is paused
  // during the fork, so that the child does not inherit a locked allocator.
  pid_t process(const std::function<int()>& work);
  static int wait_for_exit(pid_t pid);  // waits; 1000 + the signal number if a signal ended it
  // Waits at most 20 s.
  static bool until(const std::function<bool()>& so);

 private:
  void on_loop(const std::function<void()>& work);
  void open();

  Options options_;
  gantry::test::Machine machine_;
  gantry::test::FenceDirectory fence_directory_;
  std::unique_ptr<sys::Loop> loop_;
  std::unique_ptr<daemon::SharedPages> pages_;
  std::unique_ptr<daemon::AttachedProcesses> attached_processes_;
  std::unique_ptr<daemon::ShareSocket> socket_;
  sys::Loop::Timer heartbeat_;
  std::atomic<std::uint32_t> reports_[8] = {};
  std::thread thread_;
};

}  // namespace gantry::fence::test
