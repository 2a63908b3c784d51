// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/watcher.hpp"

#include <sys/epoll.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace gantry::daemon {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kBetween = 10ms;  // somebody may stand still for a look, but no longer than 20 ms

}  // namespace

Watcher::Watcher(sys::Loop& loop, nvml_child::Sensor sensor, const Log& log, Callbacks callbacks)
    : loop_(loop), sensor_(std::move(sensor)), log_(log), callbacks_(std::move(callbacks)) {}

Result<std::unique_ptr<Watcher>> Watcher::open(sys::Loop& loop, const sys::Host& host,
                                               nvml_child::SensorOptions options, const Log& log,
                                               Callbacks callbacks) {
  GANTRY_TRY(auto sensor, nvml_child::Sensor::start(host, std::move(options)));
  std::unique_ptr<Watcher> made(new Watcher(loop, std::move(sensor), log, std::move(callbacks)));
  auto* watcher = made.get();
  GANTRY_TRY(made->watch_, loop.watch(made->sensor_.fd(), EPOLLIN,
                                      [watcher](std::uint32_t) { watcher->on_sensor(); }));
  return made;
}

void Watcher::look(Looked at) {
  at = std::max(at, again_.value_or(at));
  const auto since = Clock::now() - last_;
  if (asked_ || since < kBetween || sensor_.state() != nvml_child::State::Running) {
    again_ = at;
    if (asked_ || since >= kBetween) return;  // whatever it waits for will come
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(kBetween - since);
    soon_ = loop_.after(left, [this] { look_again(); });
    return;
  }
  again_.reset();
  asked_ = true;
  last_ = Clock::now();
  callbacks_.asking();
  sensor_.ask_readings(at == Looked::AtAll ? nvml_child::Depth::Processes
                                           : nvml_child::Depth::Memory);
}

void Watcher::look_again() {
  if (const auto at = std::exchange(again_, std::nullopt)) look(*at);
}

void Watcher::look_every(std::chrono::milliseconds period) {
  regular_ = loop_.every(period, [this] { look(Looked::AtAll); });
}

void Watcher::on_sensor() {
  for (auto& message : sensor_.on_readable())
    std::visit([this](const auto& part) { take(part); }, message);
}

void Watcher::take(const nvml_child::ViewMessage& message) {
  if (!message.nvml.driver.nvml_error.empty()) return;  // the state tells why
  cards_.clear();
  for (const auto& gpu : message.nvml.gpus) {
    const auto bytes = gpu.memory_bytes.value_or(0);
    if (gpu.uuid.text.empty() || bytes == 0) continue;
    if (gpu.mig.current == model::MigMode::Enabled) continue;  // its instances are its shares
    cards_.push_back({.uuid = gpu.uuid, .memory_bytes = bytes});
  }
  trouble_ = cards_.empty() ? "the driver shows no GPU that is not in MIG mode" : "";
  callbacks_.machine();
}

// Who is shown the picture may want another one, which begins only when everybody has seen this
// one: what was noted when it was asked for is compared with it.
void Watcher::take(const nvml_child::ReadingsMessage& message) {
  if (message.depth == nvml_child::Depth::Vital) return;  // after an Xid: it shows no process
  asked_ = true;
  callbacks_.picture(message.readings,
                     message.depth == nvml_child::Depth::Memory ? Looked::AtMemory : Looked::AtAll);
  asked_ = false;
  look_again();
}

void Watcher::take(const nvml_child::StateMessage& message) {
  asked_ = false;
  if (message.state == nvml_child::State::Running) {
    return look_again();
  }
  if (message.state != nvml_child::State::NoDriver &&
      message.state != nvml_child::State::BackingOff)
    return;
  trouble_ = message.why.empty() ? "there is no NVIDIA driver" : message.why;
  log_.warning("", fmt::format("NVML does not answer: {}", trouble_));
  callbacks_.machine();
}

void Watcher::take(const nvml_child::EventMessage& /*message*/) {}

void Watcher::take(const nvml_child::KernelChangedMessage& /*message*/) {
  sensor_.ask_view();
}

}  // namespace gantry::daemon
