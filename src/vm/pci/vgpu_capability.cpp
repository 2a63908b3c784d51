// SPDX-License-Identifier: Apache-2.0
#include "vm/pci/vgpu_capability.hpp"

#include <algorithm>

namespace gantry::pci {
namespace {

constexpr std::size_t kStatusAt = 0x06;
constexpr unsigned char kHasCapabilities = 0x10;
constexpr std::size_t kFirstCapability = 0x34;
constexpr unsigned char kVendorSpecific = 0x09;
constexpr std::size_t kVersionSize = 10;
constexpr std::size_t kRecordsAt = 5;  // after id, next, length, 'V', 'F'

unsigned char at(std::string_view bytes, std::size_t place) {
  return place < bytes.size() ? static_cast<unsigned char>(bytes[place]) : 0;
}

std::string text_at(std::string_view bytes, std::size_t place) {
  if (place >= bytes.size()) return "";
  const auto field = bytes.substr(place, kVersionSize);
  return std::string(field.substr(0, std::min(field.find('\0'), field.size())));
}

// Records: id, length (including these two bytes), content. Record 0 is the host's driver.
VgpuCapability facts_in(std::string_view capability) {
  for (std::size_t place = kRecordsAt; place + 2 <= capability.size();) {
    const auto length = at(capability, place + 1);
    if (length < 2) break;
    if (at(capability, place) == 0) {
      return {text_at(capability, place + 2), text_at(capability, place + 2 + kVersionSize)};
    }
    place += length;
  }
  return {};
}

}  // namespace

std::optional<VgpuCapability> parse_vgpu_capability(std::string_view config_space) {
  if ((at(config_space, kStatusAt) & kHasCapabilities) == 0) return std::nullopt;
  std::size_t place = at(config_space, kFirstCapability) & 0xfcU;
  for (int steps = 0; steps < 48 && place >= 0x40 && place + 3 <= config_space.size(); ++steps) {
    if (at(config_space, place) == kVendorSpecific) {
      const auto capability = config_space.substr(place, at(config_space, place + 2));
      if (at(capability, 3) == 'V' && at(capability, 4) == 'F') return facts_in(capability);
    }
    place = at(config_space, place + 1) & 0xfcU;
  }
  return std::nullopt;
}

}  // namespace gantry::pci
