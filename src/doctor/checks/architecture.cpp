// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/architecture.hpp"

#include <algorithm>
#include <array>

namespace gantry::doctor {
namespace {

struct Range {
  std::uint16_t first;
  std::uint16_t last;
  std::string_view name;
};

constexpr std::array kRanges{
    Range{0x0FC0, 0x12FF, "Kepler"}, Range{0x1340, 0x17FF, "Maxwell"},
    Range{0x1B00, 0x1D7F, "Pascal"}, Range{0x1D80, 0x1DFF, "Volta"},
    Range{0x1E00, 0x1FFF, "Turing"}, Range{0x2080, 0x20FF, "Ampere"},
    Range{0x2180, 0x21FF, "Turing"}, Range{0x2200, 0x22FF, "Ampere"},
    Range{0x2300, 0x234F, "Hopper"}, Range{0x2480, 0x25FF, "Ampere"},
    Range{0x2680, 0x28FF, "Ada"},    Range{0x2900, 0x2FFF, "Blackwell"},
};

}  // namespace

std::string_view architecture_of_device(std::uint16_t device) {
  // Pascal's first chip lies inside Maxwell's range.
  if (device >= 0x15F0 && device <= 0x15FF) return "Pascal";
  const auto range = std::find_if(kRanges.begin(), kRanges.end(), [&](const Range& r) {
    return device >= r.first && device <= r.last;
  });
  return range == kRanges.end() ? "" : range->name;
}

ModuleSupport module_support(std::string_view architecture) {
  constexpr std::array kOld{"Fermi", "Kepler", "Maxwell", "Pascal", "Volta"};
  if (std::find(kOld.begin(), kOld.end(), architecture) != kOld.end()) {
    return ModuleSupport::ProprietaryOnly;
  }
  return architecture == "Blackwell" ? ModuleSupport::OpenOnly : ModuleSupport::Either;
}

}  // namespace gantry::doctor
