// SPDX-License-Identifier: Apache-2.0
// A QEMU command line as a list of options, as a person wrote it or as libvirt did.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::hypervisor {

struct QemuOption {
  std::string name;   // "device", without dashes
  std::string value;  // "" if it has none
  int line = 1;
};

struct QemuCommand {
  std::vector<QemuOption> options;
  std::optional<std::uint64_t> lock_limit_bytes;  // of `ulimit -l` before it; max for unlimited
};

// NotFound if the text calls no qemu-system-*.
Result<QemuCommand> parse_qemu_command(std::string_view text);

// "vfio-pci,host=3b:00.0" or {"driver":"vfio-pci","host":"3b:00.0"}: the value without a name gets
// the name `first`. Two commas in a row stand for one. A JSON text that cannot be read is Corrupt.
Result<std::map<std::string, std::string>> parse_properties(std::string_view value,
                                                            std::string_view first);

// "16G", "16384M", "4096": QEMU's sizes. A number without a unit counts in `unit` bytes.
std::optional<std::uint64_t> parse_qemu_size(std::string_view text, std::uint64_t unit);

}  // namespace gantry::hypervisor
