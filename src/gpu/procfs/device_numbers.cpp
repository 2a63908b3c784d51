// SPDX-License-Identifier: Apache-2.0
#include "gpu/procfs/device_numbers.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

namespace gantry::procfs {
namespace {

constexpr std::size_t kMaxRows = 512;
// 32 GPUs with 15 GPU instances of 9 nodes each are 4320.
constexpr std::size_t kMaxMigRows = 65536;

std::optional<std::uint32_t> parse_u32(std::string_view text) {
  const auto value = parse_u64(text);
  if (!value || *value > 0xffffffffU) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

// Removes "gi12" and the slash after it from the front of "gi12/ci0/access".
std::optional<std::uint32_t> take_numbered(std::string_view& text, std::string_view prefix) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos || !text.starts_with(prefix)) return std::nullopt;
  const auto number = parse_u32(text.substr(prefix.size(), slash - prefix.size()));
  if (number) text.remove_prefix(slash + 1);
  return number;
}

std::optional<MigMinor> parse_mig_line(std::string_view line) {
  const auto space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto minor = parse_u32(trim(line.substr(space)));
  if (!minor) return std::nullopt;
  auto what = line.substr(0, space);
  MigMinor row{.minor = *minor};
  if (what == "config") return row;
  row.node = MigMinorKind::Monitor;
  if (what == "monitor") return row;
  const auto gpu = take_numbered(what, "gpu");
  const auto gpu_instance = gpu ? take_numbered(what, "gi") : std::nullopt;
  if (!gpu_instance) return std::nullopt;
  row.node = MigMinorKind::GpuInstance;
  row.gpu = *gpu;
  row.gpu_instance = *gpu_instance;
  if (what == "access") return row;
  const auto compute_instance = take_numbered(what, "ci");
  if (!compute_instance || what != "access") return std::nullopt;
  row.node = MigMinorKind::ComputeInstance;
  row.compute_instance = *compute_instance;
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

std::string MigMinor::name() const {
  switch (node) {
    case MigMinorKind::Config: return "config";
    case MigMinorKind::Monitor: return "monitor";
    case MigMinorKind::GpuInstance: return fmt::format("gpu{}/gi{}", gpu, gpu_instance);
    case MigMinorKind::ComputeInstance: break;
  }
  return fmt::format("gpu{}/gi{}/ci{}", gpu, gpu_instance, compute_instance);
}

const MigMinor* MigMinors::find_by_minor(std::uint32_t minor) const {
  for (const auto& row : rows) {
    if (row.minor == minor) return &row;
  }
  return nullptr;
}

std::optional<std::uint32_t> MigMinors::gpu_instance(std::uint32_t gpu, std::uint32_t gi) const {
  for (const auto& row : rows) {
    if (row.node == MigMinorKind::GpuInstance && row.gpu == gpu && row.gpu_instance == gi)
      return row.minor;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> MigMinors::compute_instance(std::uint32_t gpu, std::uint32_t gi,
                                                         std::uint32_t ci) const {
  for (const auto& row : rows) {
    const bool same = row.gpu == gpu && row.gpu_instance == gi && row.compute_instance == ci;
    if (row.node == MigMinorKind::ComputeInstance && same) return row.minor;
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
    minors.rows.push_back(*row);
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

}  // namespace gantry::procfs
