// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/vgpu_profile.hpp"

#include "base/core/text.hpp"
#include "vm/hypervisor/mmio.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace gantry::hypervisor {
namespace {

Error not_a_profile(std::string_view name) {
  return {Errc::Invalid,
          fmt::format("`{}` is not a vGPU profile; examples: grid_t4-8q, grid_a100-10c, "
                      "nvidia_h200x-1-18c",
                      name)};
}

bool is_card(std::string_view text) {
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

}  // namespace

Result<VgpuProfile> parse_vgpu_profile(std::string_view name) {
  const auto lower = to_lower(name);
  std::string_view rest = lower;
  for (std::string_view prefix : {"grid_", "nvidia_"}) {
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  }
  const auto parts = split(rest, '-');
  if (parts.size() < 2 || parts.size() > 3 || !is_card(parts.front())) return not_a_profile(name);
  VgpuProfile profile;
  profile.card = std::string(parts.front());
  if (parts.size() == 3) {
    const auto slices = parse_u64(parts[1]);
    if (!slices || *slices < 1 || *slices > 7) return not_a_profile(name);
    profile.slices = static_cast<int>(*slices);
  }
  auto size = parts.back();
  if (size.size() < 2 || size.size() > 5) return not_a_profile(name);
  profile.series = static_cast<char>(std::toupper(static_cast<unsigned char>(size.back())));
  size.remove_suffix(1);
  const auto gb = parse_u64(size);
  if (!gb || *gb == 0 || std::string_view("ABCQ").find(profile.series) == std::string_view::npos) {
    return not_a_profile(name);
  }
  profile.gb = *gb;
  return profile;
}

GuestGpu gpu_of_profile(const VgpuProfile& profile) {
  GuestGpu gpu;
  gpu.name = profile.card;
  gpu.memory_bytes = profile.gb * kGiB;
  gpu.bars = {{.index = 1, .bytes = round_up_to_power_of_two(profile.gb * kGiB), .is_64bit = true}};
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
