// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/device_query.hpp"

#include <fmt/format.h>

namespace gantry::nvml {
namespace {

constexpr unsigned kMaxReading = 100'000'000;  // milliwatts, degrees, percent: all far below

// Error codes that mean that this card or driver lacks the feature: the value is unknown, not an
// error.
bool means_absent(nvmlReturn_t code) {
  switch (code) {
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
    case NVML_ERROR_NOT_FOUND:
    case NVML_ERROR_NO_DATA:
    case NVML_ERROR_DEPRECATED:
    case NVML_ERROR_NOT_READY:
    case NVML_ERROR_INVALID_ARGUMENT:
    case NVML_ERROR_INSUFFICIENT_SIZE:
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
    case NVML_ERROR_VGPU_ECC_NOT_SUPPORTED: return true;
    default: return false;
  }
}

}  // namespace

std::optional<int> plausible_reading(bool answered, unsigned value) {
  if (!answered || value > kMaxReading) return std::nullopt;
  return static_cast<int>(value);
}

void DeviceQuery::remember(std::string_view name, nvmlReturn_t code) {
  if (means_absent(code)) return;
  if (code == NVML_ERROR_NO_PERMISSION) return denied_calls_.emplace_back(name), void();
  if (code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_GPU_NOT_FOUND) {
    lost_ = nvml_error(code, name).text();
    return;
  }
  if (code == NVML_ERROR_RESET_REQUIRED) {
    reset_required_ = true;
    return;
  }
  for (auto& failure : failures_) {
    if (failure.code == code) return ++failure.calls, void();
  }
  failures_.push_back({code, std::string(name), 1});
}

void DeviceQuery::add_to(probe::HealthFacts& facts) const {
  if (facts.lost.empty()) facts.lost = lost_;
  facts.reset_required = facts.reset_required || reset_required_;
  for (const auto& failure : failures_) {
    auto sentence = nvml_error(failure.code, failure.first_call).text();
    if (failure.calls > 1) sentence += fmt::format(" (and {} more calls)", failure.calls - 1);
    facts.failures.push_back(std::move(sentence));
  }
}

}  // namespace gantry::nvml
