// SPDX-License-Identifier: Apache-2.0
#include "keeper/watcher.hpp"

#include <sys/epoll.h>

#include <fmt/format.h>

#include <utility>
#include <variant>

namespace gantry::keeper {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kBetween = 10ms;  // somebody may stand still for a look, but no longer than 20 ms

}  // namespace

Watcher::Watcher(sys::Loop& loop, sensor::Sensor sensor, const Log& log, Callbacks callbacks)
    : loop_(loop), sensor_(std::move(sensor)), log_(log), callbacks_(std::move(callbacks)) {}

Result<std::unique_ptr<Watcher>> Watcher::open(sys::Loop& loop, const sys::Host& host,
                                               sensor::SensorOptions options, const Log& log,
                                               Callbacks callbacks) {
  GANTRY_TRY(auto sensor, sensor::Sensor::start(host, std::move(options)));
  std::unique_ptr<Watcher> made(new Watcher(loop, std::move(sensor), log, std::move(callbacks)));
  auto* watcher = made.get();
  GANTRY_TRY(made->watch_, loop.watch(made->sensor_.fd(), EPOLLIN,
                                      [watcher](std::uint32_t) { watcher->on_sensor(); }));
  return made;
}

void Watcher::look() {
  if (asked_ || sensor_.state() != sensor::State::Running) {
    again_ = true;
    return;
  }
  const auto since = Clock::now() - last_;
  if (since < kBetween) {
    again_ = true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(kBetween - since);
    soon_ = loop_.after(left, [this] {
      if (std::exchange(again_, false)) look();
    });
    return;
  }
  again_ = false;
  asked_ = true;
  last_ = Clock::now();
  callbacks_.asking();
  sensor_.ask_readings(sensor::Depth::Processes);
}

void Watcher::look_every(std::chrono::milliseconds period) {
  regular_ = loop_.every(period, [this] { look(); });
}

void Watcher::on_sensor() {
  for (auto& message : sensor_.on_readable())
    std::visit([this](const auto& part) { take(part); }, message);
}

void Watcher::take(const sensor::ViewMessage& message) {
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

void Watcher::take(const sensor::ReadingsMessage& message) {
  asked_ = false;
  callbacks_.picture(message.readings);
  if (std::exchange(again_, false)) look();
}

void Watcher::take(const sensor::StateMessage& message) {
  asked_ = false;
  if (message.state == sensor::State::Running) {
    if (std::exchange(again_, false)) look();
    return;
  }
  if (message.state != sensor::State::NoDriver && message.state != sensor::State::BackingOff)
    return;
  trouble_ = message.why.empty() ? "there is no NVIDIA driver" : message.why;
  log_.warning("", fmt::format("NVML does not answer: {}", trouble_));
  callbacks_.machine();
}

void Watcher::take(const sensor::EventMessage& /*message*/) {}

void Watcher::take(const sensor::KernelChangedMessage& /*message*/) {
  sensor_.ask_view();
}

}  // namespace gantry::keeper
