// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/gpu_watcher.hpp"

#include "base/core/clock.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace gantry::daemon {
namespace {

using namespace std::chrono_literals;
constexpr auto kBetween = 10ms;  // a process may wait for a reading, but at most 20 ms

}  // namespace

GpuWatcher::GpuWatcher(sys::Loop& loop, nvml_child::NvmlChild sensor, const Log& log,
                       Callbacks callbacks)
    : loop_(loop), sensor_(std::move(sensor)), log_(log), callbacks_(std::move(callbacks)) {}

Result<std::unique_ptr<GpuWatcher>> GpuWatcher::open(sys::Loop& loop, const sys::Host& host,
                                                     nvml_child::NvmlChildOptions options,
                                                     const Log& log, Callbacks callbacks) {
  GANTRY_TRY(auto sensor, nvml_child::NvmlChild::start(host, std::move(options)));
  std::unique_ptr<GpuWatcher> made(
      new GpuWatcher(loop, std::move(sensor), log, std::move(callbacks)));
  auto* watcher = made.get();
  GANTRY_TRY(made->watch_, loop.watch(made->sensor_.fd(), EPOLLIN,
                                      [watcher](std::uint32_t) { watcher->on_sensor(); }));
  return made;
}

void GpuWatcher::look(ReadingScope at) {
  at = std::max(at, retry_.value_or(at));
  const auto since = Clock::now() - last_;
  if (asked_ || since < kBetween || sensor_.state() != nvml_child::ChildState::Running) {
    retry_ = at;
    if (asked_ || since >= kBetween) return;  // the awaited message will come
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(kBetween - since);
    delayed_request_ = loop_.after(left, [this] { request_again(); });
    return;
  }
  retry_.reset();
  asked_ = true;
  last_ = Clock::now();
  callbacks_.asking();
  sensor_.request_readings(at == ReadingScope::Everything ? nvml_child::ReadingDepth::Processes
                                                          : nvml_child::ReadingDepth::Memory);
}

void GpuWatcher::request_again() {
  if (const auto at = std::exchange(retry_, std::nullopt)) look(*at);
}

void GpuWatcher::poll_every(std::chrono::milliseconds period) {
  poll_timer_ = loop_.every(period, [this] { look(ReadingScope::Everything); });
}

void GpuWatcher::on_sensor() {
  for (auto& message : sensor_.on_readable())
    std::visit([this](const auto& part) { take(part); }, message);
}

void GpuWatcher::take(const nvml_child::ViewMessage& message) {
  if (!message.nvml.inventory.driver.nvml_error.empty()) return;  // the state says why
  cards_.clear();
  for (const auto& gpu : message.nvml.inventory.gpus) {
    const auto bytes = gpu.memory_bytes.value_or(0);
    if (gpu.uuid.text.empty() || bytes == 0) continue;
    if (gpu.mig.current == model::MigMode::Enabled) continue;  // its MIG instances are its shares
    cards_.push_back({.uuid = gpu.uuid, .memory_bytes = bytes});
  }
  trouble_ = cards_.empty() ? "the driver has no GPU outside of MIG mode" : "";
  callbacks_.machine();
}

// A callback may request another reading. It begins only after all callbacks have seen this one,
// because they compare it with what they noted when it was requested.
void GpuWatcher::take(const nvml_child::ReadingsMessage& message) {
  if (message.depth == nvml_child::ReadingDepth::Vital)
    return;  // after an Xid: it has no processes
  asked_ = true;
  callbacks_.picture(message.readings, message.depth == nvml_child::ReadingDepth::Memory
                                           ? ReadingScope::MemoryOnly
                                           : ReadingScope::Everything);
  asked_ = false;
  request_again();
}

void GpuWatcher::take(const nvml_child::StateMessage& message) {
  asked_ = false;
  if (message.state == nvml_child::ChildState::Running) {
    return request_again();
  }
  if (message.state != nvml_child::ChildState::NoDriver &&
      message.state != nvml_child::ChildState::BackingOff)
    return;
  trouble_ = message.why.empty() ? "there is no NVIDIA driver" : message.why;
  log_.warning("", "NVML does not answer", {{"err", trouble_}});
  callbacks_.machine();
}

void GpuWatcher::take(const nvml_child::EventMessage& /*message*/) {}

void GpuWatcher::take(const nvml_child::KernelChangedMessage& /*message*/) {
  sensor_.request_view();
}

}  // namespace gantry::daemon
