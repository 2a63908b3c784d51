// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "sharing/policy/share.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::policy {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::uint64_t kKi = 1024;
constexpr std::uint64_t kMi = kKi * 1024;
constexpr std::uint64_t kGi = kMi * 1024;
constexpr std::uint64_t kTi = kGi * 1024;
constexpr std::array kUnits{
    Unit{"TiB", kTi},
    Unit{"GiB", kGi},
    Unit{"MiB", kMi},
    Unit{"KiB", kKi},
    Unit{"Ti", kTi},
    Unit{"Gi", kGi},
    Unit{"Mi", kMi},
    Unit{"Ki", kKi},
    Unit{"T", kTi},
    Unit{"G", kGi},
    Unit{"M", kMi},
    Unit{"K", kKi},
    Unit{"B", 1},
    Unit{"", 1},
    Unit{"KB", 1000},
    Unit{"MB", 1000'000},
    Unit{"GB", 1000'000'000},
    Unit{"TB", 1000'000'000'000},
};
constexpr std::uint64_t kMaxMemoryBytes = std::uint64_t{1}
                                          << 50;  // a thousand times today's largest GPU
constexpr std::size_t kDecimals = 9;

Error wrong(std::string_view text, std::string_view why) {
  return {Errc::Invalid, fmt::format("memory `{}`: {}; write bytes, a size with a unit, or a "
                                     "percentage of the GPU's memory: 10GiB, 512MiB, 1.5GiB, 50%",
                                     text, why)};
}

std::optional<std::uint64_t> unit_from(std::string_view name) {
  for (const auto& unit : kUnits) {
    if (to_lower(unit.name) == to_lower(name)) return unit.bytes;
  }
  return std::nullopt;
}

// `decimals` of a unit, rounded down: "5" of 2^30 is 2^29.
std::optional<std::uint64_t> fraction_of(std::string_view decimals, std::uint64_t unit) {
  const auto value = parse_u64(decimals);
  if (!value || decimals.size() > kDecimals) return std::nullopt;
  std::uint64_t scale = 1;
  for (std::size_t i = 0; i < decimals.size(); ++i) scale *= 10;
  // Unit and value are below 2^41 and 2^30: the product needs more than 64 bits.
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{unit} * *value / scale);
}

Result<MemoryLimit> percent_from(std::string_view text, std::string_view digits) {
  const auto percent = parse_u64(digits);
  if (!percent || *percent == 0 || *percent > 100) {
    return wrong(text, "a percentage must be a whole number from 1 to 100");
  }
  return MemoryLimit{.percent = static_cast<std::uint32_t>(*percent)};
}

}  // namespace

std::uint64_t MemoryLimit::on(std::uint64_t card_bytes) const {
  if (percent == 0) return bytes;
  return (card_bytes / 100 * percent + card_bytes % 100 * percent / 100) / kMi * kMi;
}

Result<MemoryLimit> parse_memory_limit(std::string_view text) {
  const auto body = trim(text);
  if (body.ends_with('%')) return percent_from(text, trim(body.substr(0, body.size() - 1)));
  const auto digits = body.substr(0, body.find_first_not_of("0123456789."));
  if (digits.empty()) return wrong(text, "it does not begin with a number");
  const auto unit = unit_from(trim(body.substr(digits.size())));
  if (!unit) return wrong(text, "there is no such unit");
  const auto dot = digits.find('.');
  const auto whole = parse_u64(digits.substr(0, dot));
  if (!whole || *whole > kMaxMemoryBytes / *unit)
    return wrong(text, "it is not a number, or is too large");
  std::uint64_t bytes = *whole * *unit;
  if (dot != std::string_view::npos) {
    const auto fraction = fraction_of(digits.substr(dot + 1), *unit);
    if (!fraction) return wrong(text, "it may have at most nine digits after the point");
    bytes += *fraction;
  }
  if (bytes == 0) return wrong(text, "a share needs memory");
  return MemoryLimit{.bytes = bytes};
}

std::string to_string(const MemoryLimit& memory) {
  if (memory.percent != 0) return fmt::format("{}%", memory.percent);
  // "10GB" rather than "9765625KiB": as it was written.
  for (const auto& unit : {Unit{"TiB", kTi}, Unit{"GiB", kGi}, Unit{"MiB", kMi},
                           Unit{"GB", 1000'000'000}, Unit{"MB", 1000'000}, Unit{"KiB", kKi}}) {
    if (memory.bytes != 0 && memory.bytes % unit.bytes == 0) {
      return fmt::format("{}{}", memory.bytes / unit.bytes, unit.name);
    }
  }
  return fmt::format("{}", memory.bytes);
}

}  // namespace gantry::policy
