// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/vgpu_profile.hpp"

#include "base/core/text.hpp"
#include "vm/hypervisor/mmio.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace gantry::hypervisor {
namespace {

// NVIDIA AI Enterprise asks for 64-bit MMIO and 64 GB of it for every vGPU of the C series on ESXi.
constexpr std::uint64_t kComputeWindow = 64 * kGiB;

Error not_a_profile(std::string_view name) {
  return {Errc::Invalid,
          fmt::format("`{}` is not a vGPU profile; examples: grid_t4-8q, grid_a100-10c, "
                      "nvidia_h200x-1-18c",
                      name)};
}

// Cards such as rtx6000-ada have a dash.
bool is_card(std::string_view text) {
  return !text.empty() && text.size() <= 32 && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
         });
}

// "8q", "5cme", "2b4": framebuffer, series, and what a MIG profile or a B-series type adds.
bool read_size(std::string_view text, VgpuProfile& profile) {
  const auto digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits > 3 || digits == std::string_view::npos) return false;
  profile.gb = parse_u64(text.substr(0, digits)).value_or(0);
  profile.series = static_cast<char>(std::toupper(static_cast<unsigned char>(text[digits])));
  const auto added = text.substr(digits + 1);
  constexpr std::array<std::string_view, 5> kMigAttributes{"", "me", "nome", "meall", "gfx"};
  const bool mig =
      std::find(kMigAttributes.begin(), kMigAttributes.end(), added) != kMigAttributes.end();
  return profile.gb != 0 &&
         std::string_view("ABCQ").find(profile.series) != std::string_view::npos &&
         (added.empty() || (profile.slices != 0 ? mig : added == "4"));
}

}  // namespace

Result<VgpuProfile> parse_vgpu_profile(std::string_view name) {
  const auto lower = to_lower(name);
  std::string_view rest = lower;
  for (std::string_view prefix : {"grid_", "nvidia_"}) {
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  }
  const auto dash = rest.rfind('-');
  if (dash == std::string_view::npos) return not_a_profile(name);
  const auto size = rest.substr(dash + 1);
  rest = rest.substr(0, dash);
  VgpuProfile profile;
  const auto before = rest.rfind('-');
  const auto slices =
      before == std::string_view::npos ? std::nullopt : parse_u64(rest.substr(before + 1));
  if (slices) {
    if (*slices < 1 || *slices > 7) return not_a_profile(name);
    profile.slices = static_cast<int>(*slices);
    rest = rest.substr(0, before);
  }
  if (!is_card(rest) || !read_size(size, profile)) return not_a_profile(name);
  profile.card = std::string(rest);
  return profile;
}

GuestGpu gpu_of_profile(const VgpuProfile& profile) {
  GuestGpu gpu;
  gpu.name = profile.card;
  gpu.memory_bytes = profile.gb * kGiB;
  const auto least = profile.series == 'C' ? kComputeWindow : 0;
  gpu.bars = {{.index = 1,
               .bytes = std::max(round_up_to_power_of_two(profile.gb * kGiB), least),
               .is_64bit = true}};
  return gpu;
}

std::string_view licence_of(char series) {
  switch (series) {
    case 'A': return "NVIDIA Virtual Applications";
    case 'B': return "NVIDIA Virtual PC";
    case 'Q': return "NVIDIA RTX Virtual Workstation";
    default: return "NVIDIA AI Enterprise";
  }
}

}  // namespace gantry::hypervisor
