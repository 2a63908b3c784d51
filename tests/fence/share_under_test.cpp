// SPDX-License-Identifier: Apache-2.0
#include "fence/share_under_test.hpp"

#include "sim/machine/machine.hpp"
#include "sim/machine/tree.hpp"
#include "support/paths.hpp"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

namespace gantry::fence::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// "GPU-00112233-..." as the pages have it.
std::array<std::uint8_t, 16> bytes_of(const std::string& uuid) {
  std::string digits;
  for (const char each : uuid.substr(4)) {
    if (each != '-') digits += each;
  }
  std::array<std::uint8_t, 16> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out.at(i) = static_cast<std::uint8_t>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
  }
  return out;
}

std::vector<daemon::GpuPageValues> page_gpus(const ShareUnderTest::Options& options) {
  const auto machine = sim::load_machine(options.machine);
  std::vector<daemon::GpuPageValues> gpus;
  for (const std::uint32_t index : options.gpus) {
    daemon::GpuPageValues gpu;
    gpu.uuid = bytes_of(machine->gpus.at(index).uuid);
    gpu.memory_total = std::uint64_t{machine->gpus.at(index).memory_total_mib} * kMiB;
    gpu.memory_limit = options.memory_limit;
    gpu.context_estimate = options.context_estimate;
    gpu.queue_ns = options.queue_ns;
    gpus.push_back(gpu);
  }
  return gpus;
}

}  // namespace

void* CudaLibrary::open(const std::string& file) {
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) ADD_FAILURE() << ::dlerror();
  return handle;
}

ShareUnderTest::ShareUnderTest(const Options& options)
    : options_(options), machine_(options.machine) {
  const auto marker = sim::read_marker(machine_.root());
  EXPECT_TRUE(marker.ok());
  fence_directory_.link("cuda", machine_.path(marker->cuda_library));
  fence_directory_.install(gantry::test::built("lib/libgantry-fence.so"), "libcuda.so.1");
  start_daemon();
}

ShareUnderTest::~ShareUnderTest() {
  stop_daemon();
}

void ShareUnderTest::start_daemon() {
  loop_ = *sys::Loop::make();
  pages_ = std::make_unique<daemon::SharedPages>(
      *daemon::SharedPages::make("tested", page_gpus(options_)));
  pages_->set_flags(options_.flags);
  pages_->heartbeat(daemon::monotonic_ns());
  attached_processes_ = std::make_unique<daemon::AttachedProcesses>(
      *loop_, *pages_,
      daemon::AttachedProcesses::Callbacks{[](const daemon::AttachedProcess&) {},
                                           [](const daemon::AttachedProcess&) {}});
  socket_ = *daemon::ShareSocket::open(*loop_, fence_directory_.path("socket"), *pages_,
                                       *attached_processes_,
                                       {.report = [this](std::uint32_t, const FenceReport& report) {
                                         if (report.event < std::size(reports_))
                                           ++reports_[report.event];
                                       }});
  heartbeat_ = loop_->every(100ms, [this] {
    pages_->heartbeat(daemon::monotonic_ns());
    socket_->on_heartbeat();
  });
  thread_ = std::thread([this] { (void)loop_->run().ok(); });
}

void ShareUnderTest::stop_daemon() {
  if (!thread_.joinable()) return;
  loop_->stop();
  thread_.join();
  heartbeat_.cancel();
  socket_.reset();
  attached_processes_.reset();
  pages_.reset();
  loop_.reset();
}

void ShareUnderTest::on_loop(const std::function<void()>& work) {
  const auto done = std::make_shared<std::promise<void>>();
  loop_->post([&work, done] {
    work();
    done->set_value();
  });
  done->get_future().wait();
}

void ShareUnderTest::set_limit(std::uint64_t bytes, std::uint32_t gpu) {
  options_.memory_limit = bytes;
  daemon::GpuPageValues values = page_gpus(options_).at(gpu);
  on_loop([&] { pages_->set_gpu(gpu, values); });
}

void ShareUnderTest::set_overhead(std::uint64_t bytes, std::uint32_t gpu) {
  on_loop([&] { pages_->set_overhead(gpu, bytes); });
}

void ShareUnderTest::set_flags(std::uint32_t flags) {
  options_.flags = flags;
  on_loop([&] { pages_->set_flags(flags); });
}

daemon::ProcessUsage ShareUnderTest::usage(std::uint32_t slot, std::uint32_t gpu) {
  daemon::ProcessUsage found;
  on_loop([&] { found = pages_->usage(slot, gpu); });
  return found;
}

std::uint64_t ShareUnderTest::held(std::uint32_t gpu) {
  std::uint64_t total = 0;
  on_loop([&] {
    for (std::uint32_t slot = 0; slot < pages_->slots_in_use(); ++slot)
      total += pages_->usage(slot, gpu).held;
  });
  return total;
}

std::uint32_t ShareUnderTest::processes() {
  std::size_t count = 0;
  on_loop([&] { count = attached_processes_->by_slot().size(); });
  return static_cast<std::uint32_t>(count);
}

std::uint32_t ShareUnderTest::reports(FenceEvent event) {
  on_loop([] {});
  return reports_[event].load();
}

std::uint64_t ShareUnderTest::watch_until(const std::function<bool()>& done, std::uint32_t gpu) {
  std::uint64_t most = 0;
  while (!done()) most = std::max(most, held(gpu));
  return most;
}

pid_t ShareUnderTest::process(const std::function<int()>& work) {
  // Shared, because either thread may be the last to use them.
  const auto parked = std::make_shared<std::promise<void>>();
  const auto forked = std::make_shared<std::promise<void>>();
  if (thread_.joinable()) {
    loop_->post([parked, go_on = forked->get_future().share()] {
      parked->set_value();
      go_on.wait();
    });
    parked->get_future().wait();
  }
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  forked->set_value();
  EXPECT_GT(child, 0);
  return child;
}

int ShareUnderTest::wait_for_exit(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

bool ShareUnderTest::until(const std::function<bool()>& so) {
  const auto end = Clock::now() + 20s;
  while (!so()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

}  // namespace gantry::fence::test
