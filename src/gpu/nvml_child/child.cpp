// SPDX-License-Identifier: Apache-2.0
// The process that has NVML loaded. It has two threads: one answers requests, one waits for events.
#include "base/core/clock.hpp"
#include "base/core/text.hpp"
#include "base/core/unix_time.hpp"
#include "gpu/nvml_child/event_waiter_internal.hpp"
#include "gpu/nvml_child/message_writer_internal.hpp"
#include "gpu/nvml_child/profile_internal.hpp"
#include "gpu/nvml_child/readings_internal.hpp"
#include "gpu/nvml_child/wire_internal.hpp"
#include "gpu/probe/kernel_view.hpp"
#include "gpu/probe/nvml_library.hpp"
#include "gpu/probe/nvml_view.hpp"
#include "gpu/probe/snapshot.hpp"

#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

namespace gantry::nvml_child {
namespace {

using namespace std::chrono_literals;

constexpr int kSocket = 3;
constexpr int kUsage = 2;
constexpr int kNoNvml = 1;  // the view contains the reason

// A tool that changes the MIG layout causes one event for each instance: wait until it has
// finished.
constexpr auto kQuiet = 100ms;
constexpr auto kQuietAtMost = 1000ms;

class Child {
 public:
  Child(const sys::Host& host, const driver::Nvml& nvml, std::chrono::milliseconds event_wait)
      : host_(host),
        nvml_(nvml),
        writer_(kSocket),
        events_(nvml, writer_, event_wait),
        profiler_(GpmFunctions::of(nvml)) {}

  int run();

 private:
  bool look(bool always);  // false: NVML has failed, and the parent has been told
  bool answer(ReadingDepth depth);
  bool has_changed(const model::Readings& readings) const;
  bool take_question();
  int poll_timeout() const;

  const sys::Host& host_;
  const driver::Nvml& nvml_;
  MessageWriter writer_;
  EventWaiter events_;
  Profiler profiler_;
  Devices devices_;
  std::string generation_;
  std::set<std::string> instances_;
  std::optional<Clock::time_point> look_at_, look_before_;
};

bool Child::look(bool always) {
  look_at_.reset();
  look_before_.reset();
  const auto seen =
      probe::read_nvml_view(nvml_, {.load = false, .processes = false, .links = true});
  const auto& view = seen.inventory;
  auto generation = probe::generation_of(view);
  if (view.driver.nvml_error.empty()) {
    devices_ = find_devices(nvml_);
    events_.watch(devices_.list);
    if (generation != generation_) profiler_.forget();
    instances_.clear();
    for (const auto& gpu : view.gpus) {
      for (const auto& mig : gpu.mig.instances) instances_.insert(mig.uuid.text);
    }
  }
  const bool failed = !view.driver.nvml_error.empty();
  if (always || failed || generation != generation_) {
    writer_.say(PacketKind::View, probe::to_bytes(seen));
  }
  generation_ = std::move(generation);
  ::malloc_trim(0);  // the view was large, and most readings are small
  return !failed;
}

bool Child::has_changed(const model::Readings& readings) const {
  std::set<std::string> seen;
  for (const auto& gpu : readings.gpus) {
    for (const auto& instance : gpu.instances) seen.insert(instance.uuid.text);
  }
  return seen != instances_;
}

bool Child::answer(ReadingDepth depth) {
  auto devices = find_devices(nvml_);
  if (!devices.error.empty()) return look(true);  // the view contains the full reason
  const bool other_count = devices.list.size() != devices_.list.size();
  for (std::size_t i = 0; !other_count && i < devices.list.size(); ++i) {
    // NVML gives no UUID for a lost GPU; its index still identifies it.
    if (devices.list[i].uuid.empty()) devices.list[i].uuid = devices_.list[i].uuid;
  }
  devices_ = std::move(devices);
  ReadingsPayload payload;
  payload.readings.at_unix_ms = unix_ms();
  for (const auto& device : devices_.list) {
    auto reading = read_gpu(nvml_, device, depth, payload.readings.at_unix_ms);
    if (depth == ReadingDepth::Full && device.handle != nullptr)
      profiler_.read(device.handle, reading, Clock::now());
    payload.readings.gpus.push_back(std::move(reading));
  }
  if (depth == ReadingDepth::Full) add_owners(host_, payload.readings);
  payload.event_wait_age_ms = events_.wait_age_ms();
  writer_.say(PacketKind::Readings, to_bytes(payload));
  if (other_count || (depth == ReadingDepth::Full && has_changed(payload.readings)))
    return look(false);
  return true;
}

bool Child::take_question() {
  std::array<char, 64> bytes{};
  const auto got = ::recv(kSocket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;  // the parent has exited
  const auto packet = from_datagram({bytes.data(), static_cast<std::size_t>(got)});
  if (!packet.ok()) return false;
  if (packet->kind == PacketKind::RequestView) return look(true);
  if (packet->kind != PacketKind::RequestReadings) return false;
  switch (packet->payload.empty() ? 0 : packet->payload[0]) {
    case static_cast<char>(ReadingDepth::Vital): return answer(ReadingDepth::Vital);
    case static_cast<char>(ReadingDepth::Processes): return answer(ReadingDepth::Processes);
    case static_cast<char>(ReadingDepth::Memory): return answer(ReadingDepth::Memory);
    default: return answer(ReadingDepth::Full);
  }
}

int Child::poll_timeout() const {
  if (!look_at_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*look_at_ - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

int Child::run() {
  if (!look(true)) return kNoNvml;
  events_.start();
  for (;;) {
    std::array<pollfd, 2> wait{pollfd{kSocket, POLLIN, 0}, pollfd{events_.fd(), POLLIN, 0}};
    const int ready = ::poll(wait.data(), wait.size(), poll_timeout());
    if (ready < 0 && errno != EINTR) return kNoNvml;
    if (ready > 0 && wait[1].revents != 0 && events_.take_layout_change()) {
      const auto now = Clock::now();
      if (!look_before_) look_before_ = now + kQuietAtMost;
      look_at_ = std::min(now + kQuiet, *look_before_);
    }
    if (ready > 0 && wait[0].revents != 0 && !take_question()) return 0;
    if (look_at_ && Clock::now() >= *look_at_ && !look(false)) return kNoNvml;
  }
}

int say_why(const Error& error) {
  probe::NvmlView view{.inventory = {}, .failure = NVML_ERROR_LIBRARY_NOT_FOUND};
  view.inventory.driver.nvml_error = error.text();
  MessageWriter(kSocket).say(PacketKind::View, probe::to_bytes(view));
  return kNoNvml;
}

}  // namespace

int child_main(int argc, char** argv) {
  const auto wait = argc >= 6 ? parse_u64(argv[4]) : std::nullopt;
  if (!wait || *wait > 3'600'000) {
    static constexpr std::string_view kText =
        "sensor-child is run by gantry agent: ROOT LD_CACHE EVENT_WAIT_MS DRIVER_ROOT "
        "LIBRARIES..., and a socket as descriptor 3\n";
    if (::write(STDERR_FILENO, kText.data(), kText.size()) < 0) return kUsage;
    return kUsage;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "gantry-sensor");
#ifdef SYS_close_range
  ::syscall(SYS_close_range, kSocket + 1, ~0U,
            0U);  // without effect on old kernels; there close-on-exec is enough
#endif
  ::mallopt(M_ARENA_MAX, 1);
  const auto host = sys::Host::at(argv[2]);
  if (!host.ok()) ::_exit(say_why(host.error()));
  auto nvml = probe::load_nvml(*host, probe::read_driver_module(*host).version, argv[3],
                               {.root = argv[5], .libraries = {argv + 6, argv + argc}});
  if (!nvml.ok()) ::_exit(say_why(nvml.error()));
  // Neither is destroyed: the vendor's destructors can hang, and the other thread still runs.
  auto* child =
      new Child(*host, *new driver::Nvml(*std::move(nvml)), std::chrono::milliseconds(*wait));
  ::_exit(child->run());
}

}  // namespace gantry::nvml_child
