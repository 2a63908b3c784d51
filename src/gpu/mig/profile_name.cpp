// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/profile_name.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::mig {
namespace {

constexpr std::uint64_t kMaxNumber = 99'999;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The number of "3g" for the unit "g".
std::optional<unsigned> number_before(std::string_view text, std::string_view unit) {
  if (!text.ends_with(unit)) return std::nullopt;
  text.remove_suffix(unit.size());
  const auto number = all_digits(text) ? parse_u64(text) : std::nullopt;
  if (!number || *number > kMaxNumber) return std::nullopt;
  return static_cast<unsigned>(*number);
}

std::optional<ProfileName> read_sizes(std::string_view text) {
  auto parts = split(text, '.');
  if (parts.size() != 2 && parts.size() != 3) return std::nullopt;
  const auto memory = number_before(parts.back(), "gb");
  const auto slices = number_before(parts[parts.size() - 2], "g");
  const auto compute = parts.size() == 3 ? number_before(parts[0], "c") : slices;
  if (!memory || !slices || !compute) return std::nullopt;
  return ProfileName{.compute_slices = *compute, .gpu_slices = *slices, .memory_gb = *memory};
}

bool is_attribute(std::string_view text) {
  if (text.empty() || is_digit(text.front()) || text.front() == '.' || text.back() == '.')
    return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '.'; });
}

std::optional<std::vector<std::string>> read_attributes(std::string_view text) {
  if (text.empty() || text.back() == ',') return std::nullopt;
  std::vector<std::string> attributes;
  for (const auto part : split(text, ',')) {
    if (!is_attribute(part)) return std::nullopt;
    attributes.emplace_back(part);
  }
  std::sort(attributes.begin(), attributes.end());
  const bool twice = std::adjacent_find(attributes.begin(), attributes.end()) != attributes.end();
  if (twice || attributes.empty()) return std::nullopt;
  return attributes;
}

Error not_a_profile(std::string_view text, std::string_view why) {
  return {Errc::Invalid, fmt::format("\"{}\" is not the name of a MIG profile: {}",
                                     printable(text.substr(0, kMaxProfileNameBytes)), why)};
}

constexpr std::string_view kForm = "names look like 1g.18gb, 1c.3g.71gb, 1g.18gb+me or 1g.24gb-me";

}  // namespace

ProfileName ProfileName::gpu_instance() const {
  return with_compute(gpu_slices);
}

ProfileName ProfileName::with_compute(unsigned slices) const {
  auto name = *this;
  name.compute_slices = slices;
  return name;
}

Result<ProfileName> parse_profile_name(std::string_view text) {
  if (text.size() > kMaxProfileNameBytes) return not_a_profile(text, "it is too long");
  const auto sign = text.find_first_of("+-");
  auto name = read_sizes(text.substr(0, sign));
  if (!name) return not_a_profile(text, kForm);
  if (sign == std::string_view::npos) return *std::move(name);
  const auto rest = text.substr(sign + 1);
  if (rest.find_first_of("+-") != std::string_view::npos)
    return not_a_profile(text, "it has more than one + or -");
  auto attributes = read_attributes(rest);
  if (!attributes) {
    return not_a_profile(text,
                         "an attribute begins with a letter and has letters, digits and dots; two "
                         "are separated by a comma and differ");
  }
  (text[sign] == '+' ? name->with : name->without) = *std::move(attributes);
  return *std::move(name);
}

std::string to_string(const ProfileName& name) {
  auto text = fmt::format("{}g.{}gb", name.gpu_slices, name.memory_gb);
  if (!name.whole()) text = fmt::format("{}c.{}", name.compute_slices, text);
  if (!name.with.empty()) text += fmt::format("+{}", fmt::join(name.with, ","));
  if (!name.without.empty()) text += fmt::format("-{}", fmt::join(name.without, ","));
  return text;
}

std::string to_resource_form(const ProfileName& name) {
  auto text = to_string(name);
  std::replace(text.begin(), text.end(), '+', '.');
  return text;
}

Result<ProfileName> parse_resource_form(std::string_view text) {
  std::string name(text.substr(0, kMaxProfileNameBytes + 1));
  const auto memory = name.find("gb.");
  if (memory != std::string::npos) name[memory + 2] = '+';
  return parse_profile_name(name);
}

}  // namespace gantry::mig
