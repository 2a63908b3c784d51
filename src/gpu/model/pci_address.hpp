// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::model {

struct PciAddress {
  std::uint32_t domain = 0;  // 32 bits: Azure guests have domains such as E322, VMD ones above FFFF
  std::uint8_t bus = 0;
  std::uint8_t device = 0;
  std::uint8_t function = 0;

  // Accepts "0000:3b:00.0", "00000000:3B:00.0" and, with domain 0, "3b:00.0".
  static std::optional<PciAddress> parse(std::string_view text);

  std::string sysfs() const;  // "0000:3b:00.0", as in /sys and /proc
  std::string nvml() const;   // "00000000:3B:00.0", as nvidia-smi prints it

  // clang-tidy 14 takes the 0 that a rewritten comparison compares with for a pointer.
  auto operator<=>(const PciAddress&) const = default;  // NOLINT(modernize-use-nullptr)
};

}  // namespace gantry::model
