// SPDX-License-Identifier: Apache-2.0
// The GPU resources of one container.
#pragma once

#include "cluster/podspec/request.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::podspec {

// More than any machine has, and so small that sums over a whole cluster do not overflow.
constexpr std::uint64_t kMaxMemoryUnits = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxMemoryMib = kMaxMemoryUnits << 10;
constexpr std::uint64_t kMaxGpusPerContainer = 1024;
constexpr std::size_t kMaxNameBytes = 253;  // for a UUID or a model
constexpr std::size_t kMaxAnnotationBytes = std::size_t{256} << 10;

struct GpuLimits {
  std::optional<std::uint64_t> gpu_mem;
  std::optional<std::uint64_t> gpu_count;
  std::optional<std::uint64_t> slot;
  std::optional<std::uint64_t> gpu;
  std::optional<std::uint64_t> memory_mib;
  std::optional<std::uint64_t> memory_percent;
  std::optional<std::uint64_t> cores;
  std::optional<std::uint64_t> priority;

  bool gpushare() const { return gpu_mem.value_or(0) > 0; }
  bool hami() const;
};

// Invalid, with the resource, if a value is not a whole number or is too large. A request without a
// limit counts as the limit, which is the same for such resources.
Result<GpuLimits> parse_limits(const json::Value& container);

// A value that a user wrote, for an error: its first 64 bytes, safe for a terminal.
std::string shorten(std::string_view value);

}  // namespace gantry::podspec
