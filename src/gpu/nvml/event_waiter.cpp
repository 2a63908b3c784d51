// SPDX-License-Identifier: Apache-2.0
#include "base/core/unix_time.hpp"
#include "gpu/nvml/event_waiter_internal.hpp"
#include "gpu/nvml/instance_id_internal.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

namespace gantry::nvml {
namespace {

using model::GpuEventKind;

struct Type {
  unsigned long long bit;
  GpuEventKind kind;
};
constexpr std::array kTypes{
    Type{nvmlEventTypeXidCriticalError, GpuEventKind::Xid},
    Type{nvmlEventTypeSingleBitEccError, GpuEventKind::SingleBitEcc},
    Type{nvmlEventTypeDoubleBitEccError, GpuEventKind::DoubleBitEcc},
    Type{nvmlEventMigConfigChange, GpuEventKind::MigChanged},
    Type{nvmlEventTypeSingleBitEccErrorStorm, GpuEventKind::SingleBitEccStorm},
    Type{nvmlEventTypeDramRetirementEvent, GpuEventKind::DramRetirement},
    Type{nvmlEventTypeDramRetirementFailure, GpuEventKind::DramRetirementFailure},
    Type{nvmlEventTypeNonFatalPoisonError, GpuEventKind::NonFatalPoison},
    Type{nvmlEventTypeFatalPoisonError, GpuEventKind::FatalPoison},
    Type{nvmlEventTypeGpuUnavailableError, GpuEventKind::GpuUnavailable},
    Type{nvmlEventTypeGpuRecoveryAction, GpuEventKind::RecoveryActionChanged},
};

constexpr unsigned long long wanted_types() {
  unsigned long long bits = 0;
  for (const auto& type : kTypes) bits |= type.bit;
  return bits;
}

std::optional<GpuEventKind> event_kind(unsigned long long bit) {
  for (const auto& type : kTypes) {
    if (type.bit == bit) return type.kind;
  }
  return std::nullopt;
}

std::int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

EventWaiter::EventWaiter(const Nvml& nvml, MessageWriter& talk, std::chrono::milliseconds wait)
    : nvml_(nvml), writer_(talk), wait_(wait), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void EventWaiter::watch(const std::vector<Device>& devices) {
  const std::lock_guard guard(lock_);
  const auto same = [](const Device& a, const Device& b) {
    return a.handle == b.handle && a.uuid == b.uuid;
  };
  if (std::equal(devices.begin(), devices.end(), devices_.begin(), devices_.end(), same)) return;
  devices_ = devices;
  ++devices_generation_;
}

void EventWaiter::start() {
  std::thread([this] { run(); }).detach();
}

bool EventWaiter::take_layout_change() {
  std::uint64_t count = 0;
  return ::read(wake_.get(), &count, sizeof count) == sizeof count;
}

std::uint32_t EventWaiter::wait_age_ms() const {
  const auto since = waiting_since_ms_.load();
  if (since == 0) return 0;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(steady_ms() - since, 0, 1 << 30));
}

bool EventWaiter::renew() {
  if (nvml_.nvmlEventSetCreate == nullptr || nvml_.nvmlDeviceRegisterEvents == nullptr)
    return false;
  if (set_ != nullptr) nvml_.nvmlEventSetFree(set_);
  set_ = nullptr;
  if (nvml_.nvmlEventSetCreate(&set_) != NVML_SUCCESS) return false;
  const std::lock_guard guard(lock_);
  set_generation_ = devices_generation_;
  for (const auto& device : devices_) {
    unsigned long long supported = 0;
    // Skips a lost GPU or one without events (a vGPU, a very old card); the others are still
    // watched.
    if (device.handle == nullptr ||
        nvml_.nvmlDeviceGetSupportedEventTypes(device.handle, &supported) != NVML_SUCCESS) {
      continue;
    }
    nvml_.nvmlDeviceRegisterEvents(device.handle, supported & wanted_types(), set_);
  }
  return true;
}

nvmlReturn_t EventWaiter::wait(nvmlEventData_t& data) const {
  const auto ms = static_cast<unsigned>(wait_.count());
  if (nvml_.nvmlEventSetWait_v2 != nullptr) return nvml_.nvmlEventSetWait_v2(set_, &data, ms);
  if (nvml_.nvmlEventSetWait == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  gantryEventDataV1_t old{};
  const auto result = nvml_.nvmlEventSetWait(set_, &old, ms);
  data = {old.device, old.eventType, old.eventData, kNoInstance, kNoInstance};
  return result;
}

void EventWaiter::tell(const nvmlEventData_t& data) {
  const auto kind = event_kind(data.eventType);
  if (!kind) return;
  model::GpuEvent event{.kind = *kind,
                        .gpu_instance = instance_of(data.gpuInstanceId),
                        .compute_instance = instance_of(data.computeInstanceId),
                        .data = data.eventData,
                        .at_unix_ms = unix_ms()};
  {
    const std::lock_guard guard(lock_);
    for (const auto& device : devices_) {
      if (device.handle != nullptr && device.handle == data.device) event.gpu = device.uuid;
    }
  }
  writer_.say(nvml_child::PacketKind::Event, nvml_child::to_bytes(event));
  if (*kind != GpuEventKind::MigChanged) return;
  constexpr std::uint64_t kOne = 1;
  if (::write(wake_.get(), &kOne, sizeof kOne) < 0) return;  // it is readable already
}

void EventWaiter::run() {
  using namespace std::chrono_literals;
  if (!renew()) return;
  for (;;) {
    waiting_since_ms_ = steady_ms();
    nvmlEventData_t data{};
    const auto result = wait(data);
    if (result == NVML_SUCCESS) {
      tell(data);
    } else if (result == NVML_ERROR_FUNCTION_NOT_FOUND) {
      waiting_since_ms_ = 0;
      return;
    } else if (result != NVML_ERROR_TIMEOUT) {
      std::this_thread::sleep_for(1s);  // a lost GPU breaks the whole set: create one without it
    }
    bool other = false;
    {
      const std::lock_guard guard(lock_);
      other = set_generation_ != devices_generation_;
    }
    // A new set would lose the queued events, so these are read first.
    if (result == NVML_SUCCESS || (result == NVML_ERROR_TIMEOUT && !other)) continue;
    if (!renew()) break;
  }
  waiting_since_ms_ = 0;
}

}  // namespace gantry::nvml
