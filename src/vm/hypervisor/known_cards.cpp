// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/known_cards.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::hypervisor {
namespace {

struct Card {
  std::string_view name;
  std::string_view model;
  std::uint16_t device;
  std::uint64_t memory_mib;
  std::uint64_t large_bar;  // bytes
  bool first_bar_64bit;     // from Hopper on BAR0 is 64 bits wide, so the large BAR is BAR2
  bool sriov;
};

// Where the sizes come from: a card that we measured (H200), lspci listings in public reports.
constexpr std::array kCards{
    Card{"h200", "NVIDIA H200", 0x2335, 143771, 256 * kGiB, true, true},
    Card{"h100-80", "NVIDIA H100 80GB HBM3", 0x2330, 81559, 128 * kGiB, true, true},
    Card{"a100-80", "NVIDIA A100-SXM4-80GB", 0x20b2, 81920, 128 * kGiB, false, true},
    Card{"a100-80-pcie", "NVIDIA A100 80GB PCIe", 0x20b5, 81920, 128 * kGiB, false, true},
    Card{"a100-40", "NVIDIA A100-SXM4-40GB", 0x20b0, 40960, 64 * kGiB, false, true},
    Card{"a100-40-pcie", "NVIDIA A100-PCIE-40GB", 0x20f1, 40960, 64 * kGiB, false, true},
    Card{"l40s", "NVIDIA L40S", 0x26b9, 46068, 64 * kGiB, false, true},
    Card{"p100-16", "Tesla P100-PCIE-16GB", 0x15f8, 16384, 16 * kGiB, false, false},
    Card{"t4", "Tesla T4", 0x1eb8, 15360, 256 * kMiB, false, true},
};

GuestGpu gpu_of_card(const Card& card) {
  GuestGpu gpu;
  gpu.name = std::string(card.model);
  gpu.device = card.device;
  gpu.memory_bytes = card.memory_mib * kMiB;
  gpu.sriov = card.sriov;
  const int step = card.first_bar_64bit ? 2 : 1;
  gpu.bars = {{.index = 0, .bytes = 16 * kMiB, .is_64bit = card.first_bar_64bit},
              {.index = step, .bytes = card.large_bar, .is_64bit = true},
              {.index = step + 2, .bytes = 32 * kMiB, .is_64bit = true}};
  return gpu;
}

}  // namespace

std::optional<GuestGpu> card_by_device_id(std::uint16_t device) {
  for (const auto& card : kCards) {
    if (card.device == device) return gpu_of_card(card);
  }
  return std::nullopt;
}

Result<GuestGpu> card_by_name(std::string_view name) {
  const auto wanted = to_lower(name);
  for (const auto& card : kCards) {
    if (card.name == wanted) return gpu_of_card(card);
  }
  return Error(Errc::NotFound,
               fmt::format("there is no card `{}`; known cards: {}", name, known_card_names()));
}

std::string known_card_names() {
  std::string names;
  for (const auto& card : kCards) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", card.name);
  }
  return names;
}

}  // namespace gantry::hypervisor
