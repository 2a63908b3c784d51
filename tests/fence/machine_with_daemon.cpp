// SPDX-License-Identifier: Apache-2.0
#include "fence/machine_with_daemon.hpp"

#include "sharing/daemon/serve.hpp"
#include "sim/machine/tree.hpp"
#include "support/paths.hpp"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace gantry::fence::test {
namespace {

[[noreturn]] void keep(const sys::Host& host) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto ended = daemon::serve({.host = *sys::Host::at(host.root()), .sensor = {}});
  ::_exit(ended.ok() ? 0 : 1);
}

[[noreturn]] void work(const std::string& libcuda, unsigned kernel_us, SharedCounter& counter) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const CudaLibrary cuda(libcuda);
  const CUfunction function = sim::cuda::ready(cuda, "spin", kSpinPtx);
  constexpr int kTogether = 4;
  for (;;) {
    for (int i = 0; i < kTogether; ++i) {
      unsigned long long nanoseconds = kernel_us * 1000ULL;
      void* arguments[] = {&nanoseconds};
      if (cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) !=
          CUDA_SUCCESS)
        ::_exit(1);
    }
    if (cuda.cuCtxSynchronize() != CUDA_SUCCESS) ::_exit(1);
    counter.add(std::uint64_t{kernel_us} * kTogether);
  }
}

}  // namespace

MachineWithDaemon::MachineWithDaemon(const std::string& machine)
    : machine_(machine), host_(machine_.host()) {
  start_daemon();
}

MachineWithDaemon::~MachineWithDaemon() {
  if (daemon_ > 0) {  // with SIGTERM, so that it removes its files
    ::kill(daemon_, SIGTERM);
    ::waitpid(daemon_, nullptr, 0);
  }
}

std::string MachineWithDaemon::driver() const {
  return machine_.path(sim::read_marker(machine_.root())->cuda_library);
}

void MachineWithDaemon::start_daemon() {
  daemon_ = ::fork();
  if (daemon_ == 0) keep(host_);
  EXPECT_TRUE(ShareUnderTest::until([&] { return daemon::Client::connect(host_).ok(); }));
}

void MachineWithDaemon::kill_daemon() {
  end(daemon_);
  daemon_ = -1;
}

void MachineWithDaemon::signal_daemon(int signal) const {
  EXPECT_EQ(::kill(daemon_, signal), 0);
}

daemon::Client MachineWithDaemon::client() const {
  return *daemon::Client::connect(host_);
}

daemon::ShareState MachineWithDaemon::make(const policy::ShareText& text) {
  const auto share = policy::parse_share(text);
  EXPECT_TRUE(share.ok()) << share.error().text();
  auto asking = client();
  const auto made = asking.create(*share);
  EXPECT_TRUE(made.ok()) << made.error().text();
  const auto& place = fence_directories_[made->share.name];
  place.install(gantry::test::built("lib/libgantry-fence.so"), "libcuda.so.1");
  place.link("cuda", driver());
  place.link("socket", made->directory + "/socket");
  return *made;
}

SharedCounter::SharedCounter()
    : value_(
          static_cast<std::uint64_t*>(::mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
SharedCounter::~SharedCounter() {
  ::munmap(value_, sizeof *value_);
}

pid_t start_busy_process(const std::string& libcuda, unsigned kernel_us, SharedCounter& counter) {
  const pid_t pid = ::fork();
  if (pid == 0) work(libcuda, kernel_us, counter);
  return pid;
}

void end(pid_t pid) {
  if (pid <= 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

}  // namespace gantry::fence::test
