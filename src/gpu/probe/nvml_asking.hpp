// SPDX-License-Identifier: Apache-2.0
// Asking NVML about one GPU: every answer is checked, what went wrong is remembered once per
// reason, and after "lost" nothing more is asked (each further call could take seconds).
#pragma once

#include "gpu/driver/nvml.hpp"
#include "gpu/probe/health.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::probe {

class Asking {
 public:
  Asking(const driver::Nvml& nvml, nvmlDevice_t device) : nvml_(nvml), device_(device) {}

  const driver::Nvml& nvml() const { return nvml_; }
  nvmlDevice_t device() const { return device_; }
  bool lost() const { return !lost_.empty(); }
  nvmlReturn_t last() const { return last_; }  // of the newest call

  // True when the call succeeded. Use through GANTRY_ASK.
  template <class Function, class... Arguments>
  bool ask(std::string_view name, Function function, Arguments... arguments) {
    if (lost()) return false;
    last_ = function == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : function(arguments...);
    if (last_ != NVML_SUCCESS) remember(name, last_);
    return last_ == NVML_SUCCESS;
  }

  // A list that may grow between the question for its size and the question for its content. Use
  // through GANTRY_ASK_LIST.
  template <class Info, class Function>
  bool ask_list(std::string_view name, Function function, std::vector<Info>& list) {
    constexpr unsigned kMost = 4096;
    unsigned count = 64;
    for (int tries = 0; tries < 4; ++tries) {
      list.assign(count, Info{});
      unsigned filled = count;
      if (ask(name, function, device_, &filled, list.data())) {
        list.resize(std::min(filled, count));
        return true;
      }
      list.clear();
      if (last_ != NVML_ERROR_INSUFFICIENT_SIZE || filled > kMost) return false;
      count = filled + 16;
    }
    return false;
  }

  // Lost, reset required and failures, for judge().
  void add_to(HealthFacts& facts) const;
  const std::vector<std::string>& refused() const { return refused_; }  // calls we may not make

 private:
  struct Failure {
    nvmlReturn_t code;
    std::string first_call;
    unsigned calls;
  };
  void remember(std::string_view name, nvmlReturn_t code);

  const driver::Nvml& nvml_;
  nvmlDevice_t device_;
  nvmlReturn_t last_ = NVML_SUCCESS;
  std::string lost_;
  bool reset_required_ = false;
  std::vector<Failure> failures_;
  std::vector<std::string> refused_;
};

// GANTRY_ASK(asking, nvmlDeviceGetIndex, device, &index)
#define GANTRY_ASK(asking, function, ...) \
  (asking).ask(#function, (asking).nvml().function, __VA_ARGS__)
#define GANTRY_ASK_LIST(asking, function, list) \
  (asking).ask_list(#function, (asking).nvml().function, list)

// A text that NVML wrote into our buffer; it may have forgotten the NUL.
template <std::size_t N>
std::string text_of(const std::array<char, N>& buffer) {
  return {buffer.data(), ::strnlen(buffer.data(), N)};
}
template <std::size_t N>
std::string text_of(const char (&buffer)[N]) {
  return {buffer, ::strnlen(buffer, N)};
}

}  // namespace gantry::probe
