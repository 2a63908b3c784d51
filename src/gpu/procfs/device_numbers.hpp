// SPDX-License-Identifier: Apache-2.0
// The numbers of device nodes that the kernel assigns. Most majors are dynamic, so they are read
// and never assumed. The parsers accept any bytes.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::procfs {

// The character devices of /proc/devices whose names concern us: nvidia* and drm.
struct CharMajors {
  struct Row {
    std::string name;
    std::uint32_t major = 0;
    bool operator==(const Row&) const = default;
  };
  std::vector<Row> rows;

  std::optional<std::uint32_t> of(std::string_view name) const;
};
CharMajors parse_proc_devices(std::string_view text);

// A line of /proc/driver/nvidia-caps/mig-minors. `gpu` is the GPU's minor number, not its index.
enum class MigMinorKind : std::uint8_t { Config, Monitor, GpuInstance, ComputeInstance };
struct MigMinor {
  MigMinorKind node = MigMinorKind::Config;
  std::uint32_t gpu = 0, gpu_instance = 0, compute_instance = 0;  // only the parts that `node` has
  std::uint32_t minor = 0;
  bool operator==(const MigMinor&) const = default;

  std::string name() const;  // "config", "monitor", "gpu0/gi1", "gpu0/gi1/ci0"
};

struct MigMinors {
  std::vector<MigMinor> rows;

  const MigMinor* find_by_minor(std::uint32_t minor) const;
  std::optional<std::uint32_t> gpu_instance(std::uint32_t gpu, std::uint32_t gi) const;
  std::optional<std::uint32_t> compute_instance(std::uint32_t gpu, std::uint32_t gi,
                                                std::uint32_t ci) const;
};
// Corrupt if it has more lines than a driver can write. Unknown lines are skipped.
Result<MigMinors> parse_mig_minors(std::string_view text);

// "DeviceFileMinor: 4323" of a file below /proc/driver/nvidia/capabilities.
std::optional<std::uint32_t> parse_capability_minor(std::string_view text);

}  // namespace gantry::procfs
