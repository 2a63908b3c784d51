// SPDX-License-Identifier: Apache-2.0
#include "vm/pci/function.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

namespace gantry::pci {

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::Gpu: return "GPU";
    case Kind::NvSwitch: return "NVSwitch";
    case Kind::Audio: return "audio";
    case Kind::Usb: return "USB controller";
    case Kind::Ucsi: return "USB-C controller";
    case Kind::Bridge: return "bridge";
    case Kind::Other: break;
  }
  return "device";
}

std::string to_string(const CardId& id) {
  auto text = fmt::format("{:04x}:{:04x} subsystem {:04x}:{:04x} revision {:02x}", id.vendor,
                          id.device, id.subsystem_vendor, id.subsystem_device, id.revision);
  if (!id.serial.empty()) text += fmt::format(" serial {}", id.serial);
  return text;
}

bool same_card(const CardId& a, const CardId& b) {
  auto left = a;
  auto right = b;
  if (left.serial.empty() || right.serial.empty()) {
    left.serial.clear();
    right.serial.clear();
  }
  return left == right;
}

Kind Function::kind() const {
  switch (class_code >> 8U) {
    case 0x0300U:
    case 0x0302U: return Kind::Gpu;
    case 0x0680U: return id.vendor == model::kNvidiaVendor ? Kind::NvSwitch : Kind::Bridge;
    case 0x0403U: return Kind::Audio;
    case 0x0c03U: return Kind::Usb;
    case 0x0c80U: return id.vendor == model::kNvidiaVendor ? Kind::Ucsi : Kind::Other;
    case 0x0600U:
    case 0x0601U:
    case 0x0604U: return Kind::Bridge;
    default: return Kind::Other;
  }
}

std::uint64_t Function::bar_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& bar : bars) {
    if (bar.is_memory()) sum += bar.size;
  }
  return sum;
}

bool same_slot(const model::PciAddress& a, const model::PciAddress& b) {
  return a.domain == b.domain && a.bus == b.bus && a.device == b.device;
}

bool is_vfio_driver(std::string_view driver) {
  return contains(driver, "vfio");
}

const Function* Bus::find(const model::PciAddress& address) const {
  for (const auto& function : functions) {
    if (function.address == address) return &function;
  }
  return nullptr;
}

const IommuGroup* Bus::group(int number) const {
  for (const auto& group : groups) {
    if (group.number == number) return &group;
  }
  return nullptr;
}

}  // namespace gantry::pci
