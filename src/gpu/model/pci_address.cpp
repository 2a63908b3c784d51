// SPDX-License-Identifier: Apache-2.0
#include "gpu/model/pci_address.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

namespace gantry::model {

std::optional<PciAddress> PciAddress::parse(std::string_view text) {
  auto parts = split(text, ':');
  if (parts.size() == 2) parts.insert(parts.begin(), "0");
  if (parts.size() != 3) return std::nullopt;
  const auto slot = split(parts[2], '.');
  if (slot.size() != 2) return std::nullopt;
  const auto domain = parse_u64(parts[0], 16);
  const auto bus = parse_u64(parts[1], 16);
  const auto device = parse_u64(slot[0], 16);
  const auto function = parse_u64(slot[1], 16);
  if (!domain || !bus || !device || !function) return std::nullopt;
  if (*domain > UINT32_MAX || *bus > 0xff || *device > 0x1f || *function > 7) return std::nullopt;
  return PciAddress{.domain = static_cast<std::uint32_t>(*domain),
                    .bus = static_cast<std::uint8_t>(*bus),
                    .device = static_cast<std::uint8_t>(*device),
                    .function = static_cast<std::uint8_t>(*function)};
}

std::string PciAddress::sysfs() const {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function);
}

std::string PciAddress::nvml() const {
  return fmt::format("{:08X}:{:02X}:{:02X}.{:X}", domain, bus, device, function);
}

}  // namespace gantry::model
