// SPDX-License-Identifier: Apache-2.0
// Two threads: one answers requests, one waits for events.
#include "gpu/nvml/watch.hpp"

#include "base/core/clock.hpp"
#include "base/core/unix_time.hpp"
#include "base/sys/spawn.hpp"
#include "gpu/nvml/event_waiter_internal.hpp"
#include "gpu/nvml/find_library.hpp"
#include "gpu/nvml/message_writer_internal.hpp"
#include "gpu/nvml/profile_internal.hpp"
#include "gpu/nvml/read_view.hpp"
#include "gpu/nvml/readings_internal.hpp"
#include "gpu/nvml_child/wire.hpp"
#include "gpu/probe/nvml_view.hpp"
#include "gpu/probe/snapshot.hpp"

#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

namespace gantry::nvml {
namespace {

using namespace std::chrono_literals;

constexpr int kSocket = sys::kSpawnedDescriptor;
constexpr int kNoNvml = 1;  // the view contains the reason

// A tool that changes the MIG layout causes one event for each instance: wait until it has
// finished.
constexpr auto kQuiet = 100ms;
constexpr auto kQuietAtMost = 1000ms;

class Watcher {
 public:
  Watcher(const sys::Host& host, const Nvml& nvml, std::chrono::milliseconds event_wait)
      : host_(host),
        nvml_(nvml),
        writer_(kSocket),
        events_(nvml, writer_, event_wait),
        profiler_(GpmFunctions::of(nvml)) {}

  int run();

 private:
  bool look(bool always);  // false: NVML has failed, and the parent has been told
  bool answer(nvml_child::ReadingDepth depth);
  bool has_changed(const model::Readings& readings) const;
  bool take_question();
  int poll_timeout() const;

  const sys::Host& host_;
  const Nvml& nvml_;
  MessageWriter writer_;
  EventWaiter events_;
  Profiler profiler_;
  Devices devices_;
  std::string generation_;
  std::set<std::string> instances_;
  std::optional<Clock::time_point> look_at_, look_before_;
};

bool Watcher::look(bool always) {
  look_at_.reset();
  look_before_.reset();
  const auto seen = read_view(nvml_, {.load = false, .processes = false, .links = true});
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
    writer_.say(nvml_child::PacketKind::View, probe::to_bytes(seen));
  }
  generation_ = std::move(generation);
  ::malloc_trim(0);  // the view was large, and most readings are small
  return !failed;
}

bool Watcher::has_changed(const model::Readings& readings) const {
  std::set<std::string> seen;
  for (const auto& gpu : readings.gpus) {
    for (const auto& instance : gpu.instances) seen.insert(instance.uuid.text);
  }
  return seen != instances_;
}

bool Watcher::answer(nvml_child::ReadingDepth depth) {
  auto devices = find_devices(nvml_);
  if (!devices.error.empty()) return look(true);  // the view contains the full reason
  const bool other_count = devices.list.size() != devices_.list.size();
  for (std::size_t i = 0; !other_count && i < devices.list.size(); ++i) {
    // NVML gives no UUID for a lost GPU; its index still identifies it.
    if (devices.list[i].uuid.text.empty()) devices.list[i].uuid = devices_.list[i].uuid;
  }
  devices_ = std::move(devices);
  nvml_child::ReadingsPayload payload;
  payload.readings.at_unix_ms = unix_ms();
  for (const auto& device : devices_.list) {
    auto reading = read_gpu(nvml_, device, depth, payload.readings.at_unix_ms);
    if (depth == nvml_child::ReadingDepth::Full && device.handle != nullptr)
      profiler_.read(device.handle, reading, Clock::now());
    payload.readings.gpus.push_back(std::move(reading));
  }
  if (depth == nvml_child::ReadingDepth::Full) add_owners(host_, payload.readings);
  payload.event_wait_age_ms = events_.wait_age_ms();
  writer_.say(nvml_child::PacketKind::Readings, to_bytes(payload));
  if (other_count || (depth == nvml_child::ReadingDepth::Full && has_changed(payload.readings)))
    return look(false);
  return true;
}

bool Watcher::take_question() {
  std::array<char, 64> bytes{};
  const auto got = ::recv(kSocket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;  // the parent has exited
  const auto packet = nvml_child::from_datagram({bytes.data(), static_cast<std::size_t>(got)});
  if (!packet.ok()) return false;
  if (packet->kind == nvml_child::PacketKind::RequestView) return look(true);
  if (packet->kind != nvml_child::PacketKind::RequestReadings) return false;
  switch (packet->payload.empty() ? 0 : packet->payload[0]) {
    case static_cast<char>(nvml_child::ReadingDepth::Vital):
      return answer(nvml_child::ReadingDepth::Vital);
    case static_cast<char>(nvml_child::ReadingDepth::Processes):
      return answer(nvml_child::ReadingDepth::Processes);
    case static_cast<char>(nvml_child::ReadingDepth::Memory):
      return answer(nvml_child::ReadingDepth::Memory);
    default: return answer(nvml_child::ReadingDepth::Full);
  }
}

int Watcher::poll_timeout() const {
  if (!look_at_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*look_at_ - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

int Watcher::run() {
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

}  // namespace

int watch(const sys::Host& host, Nvml loaded, std::chrono::milliseconds event_wait) {
  // Neither is destroyed: the vendor's destructors can hang, and the other thread still runs.
  auto* watcher = new Watcher(host, *new Nvml(std::move(loaded)), event_wait);
  return watcher->run();
}

int send_not_loaded(const Error& why) {
  MessageWriter(kSocket).say(nvml_child::PacketKind::View, probe::to_bytes(not_loaded(why)));
  return kNoNvml;
}

}  // namespace gantry::nvml
