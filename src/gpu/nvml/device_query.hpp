// SPDX-License-Identifier: Apache-2.0
// Queries NVML about one GPU. Checks every answer and records each kind of failure once. After
// "lost" it makes no more calls, because each could take seconds.
#pragma once

#include "gpu/nvml/nvml.hpp"
#include "gpu/probe/gpu_health.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::nvml {

// nullopt if the call failed, or for a value that no GPU can have.
std::optional<int> plausible_reading(bool answered, unsigned value);

class DeviceQuery {
 public:
  DeviceQuery(const Nvml& nvml, nvmlDevice_t device) : nvml_(nvml), device_(device) {}

  const Nvml& nvml() const { return nvml_; }
  nvmlDevice_t device() const { return device_; }
  bool lost() const { return !lost_.empty(); }
  nvmlReturn_t last() const { return last_; }  // of the last call

  // Returns true if the call succeeded. Use GANTRY_QUERY.
  template <class Function, class... Arguments>
  bool ask(std::string_view name, Function function, Arguments... arguments) {
    if (lost()) return false;
    last_ = function == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : function(arguments...);
    if (last_ != NVML_SUCCESS) remember(name, last_);
    return last_ == NVML_SUCCESS;
  }

  // Reads a list that may grow between the call for its size and the call for its content. Use
  // GANTRY_QUERY_LIST.
  template <class Info, class Function>
  bool query_list(std::string_view name, Function function, std::vector<Info>& list) {
    constexpr unsigned kMaxListLength = 4096;
    unsigned count = 64;
    for (int tries = 0; tries < 4; ++tries) {
      list.assign(count, Info{});
      unsigned filled = count;
      if (ask(name, function, device_, &filled, list.data())) {
        list.resize(std::min(filled, count));
        return true;
      }
      list.clear();
      if (last_ != NVML_ERROR_INSUFFICIENT_SIZE || filled > kMaxListLength) return false;
      count = filled + 16;
    }
    return false;
  }

  // Lost, reset required and failures, for assess_health().
  void add_to(probe::HealthFacts& facts) const;
  const std::vector<std::string>& denied_calls() const {
    return denied_calls_;
  }  // calls that need more permissions

 private:
  struct Failure {
    nvmlReturn_t code;
    std::string first_call;
    unsigned calls;
  };
  void remember(std::string_view name, nvmlReturn_t code);

  const Nvml& nvml_;
  nvmlDevice_t device_;
  nvmlReturn_t last_ = NVML_SUCCESS;
  std::string lost_;
  bool reset_required_ = false;
  std::vector<Failure> failures_;
  std::vector<std::string> denied_calls_;
};

// GANTRY_QUERY(query, nvmlDeviceGetIndex, device, &index)
#define GANTRY_QUERY(query, function, ...) \
  (query).ask(#function, (query).nvml().function, __VA_ARGS__)
#define GANTRY_QUERY_LIST(query, function, list) \
  (query).query_list(#function, (query).nvml().function, list)

// A text that NVML wrote into our buffer; the NUL may be missing.
template <std::size_t N>
std::string to_string(const std::array<char, N>& buffer) {
  return {buffer.data(), ::strnlen(buffer.data(), N)};
}
template <std::size_t N>
std::string to_string(const char (&buffer)[N]) {
  return {buffer, ::strnlen(buffer, N)};
}

}  // namespace gantry::nvml
