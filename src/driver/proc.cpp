// SPDX-License-Identifier: Apache-2.0
#include "driver/proc.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

namespace gantry::driver {
namespace {

constexpr std::size_t kMaxRows = 512;
// 32 GPUs with 15 GPU instances of 9 nodes each are 4320.
constexpr std::size_t kMaxMigRows = 65536;

std::optional<std::uint32_t> parse_u32(std::string_view text) {
  const auto value = parse_u64(text);
  if (!value || *value > 0xffffffffU) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

// "gi12" with prefix "gi" -> 12
std::optional<std::uint32_t> numbered(std::string_view part, std::string_view prefix) {
  if (!part.starts_with(prefix)) return std::nullopt;
  return parse_u32(part.substr(prefix.size()));
}

std::optional<MigMinor> parse_mig_line(std::string_view line) {
  const auto space = line.rfind(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto minor = parse_u32(trim(line.substr(space)));
  if (!minor) return std::nullopt;
  const auto what = trim(line.substr(0, space));
  MigMinor row{.gpu = {},
               .gpu_instance = {},
               .compute_instance = {},
               .what = std::string(what),
               .minor = *minor};
  if (what == "config" || what == "monitor") return row;
  if (!what.ends_with("/access")) return std::nullopt;
  row.what = std::string(what.substr(0, what.size() - 7));
  const auto parts = split(row.what, '/');
  if (parts.size() != 2 && parts.size() != 3) return std::nullopt;
  row.gpu = numbered(parts[0], "gpu");
  row.gpu_instance = numbered(parts[1], "gi");
  if (!row.gpu || !row.gpu_instance) return std::nullopt;
  if (parts.size() == 3) {
    row.compute_instance = numbered(parts[2], "ci");
    if (!row.compute_instance) return std::nullopt;
  }
  return row;
}

}  // namespace

std::optional<std::uint32_t> CharMajors::of(std::string_view name) const {
  for (const auto& row : rows) {
    if (row.name == name) return row.major;
  }
  return std::nullopt;
}

CharMajors parse_proc_devices(std::string_view text) {
  CharMajors majors;
  bool character = false;
  for (const auto line : lines(text)) {
    if (line.ends_with(':')) character = line == "Character devices:";
    const auto trimmed = trim(line);
    const auto space = trimmed.find(' ');
    if (!character || space == std::string_view::npos || majors.rows.size() >= kMaxRows) continue;
    const auto number = parse_u32(trimmed.substr(0, space));
    const auto name = trim(trimmed.substr(space));
    if (number && (name.starts_with("nvidia") || name == "drm")) {
      majors.rows.push_back({std::string(name), *number});
    }
  }
  return majors;
}

const MigMinor* MigMinors::of_minor(std::uint32_t minor) const {
  for (const auto& row : rows) {
    if (row.minor == minor) return &row;
  }
  return nullptr;
}

std::optional<std::uint32_t> MigMinors::gpu_instance(std::uint32_t gpu, std::uint32_t gi) const {
  for (const auto& row : rows) {
    if (row.gpu == gpu && row.gpu_instance == gi && !row.compute_instance) return row.minor;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> MigMinors::compute_instance(std::uint32_t gpu, std::uint32_t gi,
                                                         std::uint32_t ci) const {
  for (const auto& row : rows) {
    if (row.gpu == gpu && row.gpu_instance == gi && row.compute_instance == ci) return row.minor;
  }
  return std::nullopt;
}

Result<MigMinors> parse_mig_minors(std::string_view text) {
  MigMinors minors;
  for (const auto line : lines(text)) {
    auto row = parse_mig_line(line);
    if (!row) continue;
    if (minors.rows.size() >= kMaxMigRows) {
      return Error(Errc::Corrupt, fmt::format("mig-minors: more than {} lines", kMaxMigRows));
    }
    minors.rows.push_back(*std::move(row));
  }
  return minors;
}

std::optional<std::uint32_t> parse_capability_minor(std::string_view text) {
  for (const auto line : lines(text)) {
    constexpr std::string_view kKey = "DeviceFileMinor:";
    if (line.starts_with(kKey)) return parse_u32(trim(line.substr(kKey.size())));
  }
  return std::nullopt;
}

}  // namespace gantry::driver
