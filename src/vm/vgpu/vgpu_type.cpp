// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/vgpu_type.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::vgpu {
namespace {

constexpr std::size_t kMaxNameBytes = 128;
constexpr unsigned kMaxGigabytes = 4096;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 127; });
}

std::optional<unsigned> small_number(std::string_view text, unsigned limit) {
  const auto number = parse_u64(text);
  if (!number || *number == 0 || *number > limit) return std::nullopt;
  return static_cast<unsigned>(*number);
}

// "5CME" -> 5, "C", "ME"
bool read_size(std::string_view text, TypeName& type) {
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  const auto gigabytes = small_number(text.substr(0, digits), kMaxGigabytes);
  auto rest = text.substr(digits);
  if (!gigabytes || rest.empty() || !contains("ABCQ", rest.substr(0, 1))) return false;
  type.gigabytes = *gigabytes;
  type.series = rest.substr(0, 1);
  rest.remove_prefix(1);
  if (rest == "4") {  // T4-2B4: with more frames
    type.series += rest;
    return true;
  }
  constexpr std::array<std::string_view, 5> kAttributes{"", "ME", "NOME", "MEALL", "GFX"};
  type.attribute = rest;
  return std::find(kAttributes.begin(), kAttributes.end(), rest) != kAttributes.end();
}

std::optional<ListedType> listed(std::string_view id, std::string_view name) {
  id = trim(id);
  name = trim(name);
  if (!parse_u64(id) || id.size() > 10 || !is_name(name)) return std::nullopt;
  return ListedType{std::string(id), std::string(name)};
}

std::optional<ListedType> parse_listed(std::string_view line) {
  line = trim(line);
  if (const auto colon = line.find(':'); colon != std::string_view::npos)
    return listed(line.substr(0, colon), line.substr(colon + 1));
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos) return std::nullopt;
  if (auto type = listed(line.substr(last + 1), line.substr(0, last))) return type;
  return listed(line.substr(0, first), line.substr(first + 1));
}

}  // namespace

std::optional<TypeName> parse_type_name(std::string_view key) {
  if (!is_name(key) || contains(key, " ")) return std::nullopt;
  TypeName type;
  const auto dash = key.rfind('-');
  if (dash == std::string_view::npos || !read_size(key.substr(dash + 1), type)) return std::nullopt;
  auto rest = key.substr(0, dash);
  const auto before = rest.rfind('-');
  if (before != std::string_view::npos) {
    if (const auto slices = small_number(rest.substr(before + 1), 8)) {
      type.slices = slices;
      rest = rest.substr(0, before);
    }
  }
  if (rest.empty() || (!type.slices && !type.attribute.empty())) return std::nullopt;
  type.gpu = rest;
  return type;
}

std::string without_attribute(const TypeName& type) {
  if (!type.slices) return fmt::format("{}-{}{}", type.gpu, type.gigabytes, type.series);
  return fmt::format("{}-{}-{}{}", type.gpu, *type.slices, type.gigabytes, type.series);
}

std::string mig_profile(const TypeName& type) {
  if (!type.slices) return "";
  const std::string_view added = type.attribute == "ME"      ? "+me"
                                 : type.attribute == "NOME"  ? "-me"
                                 : type.attribute == "MEALL" ? "+me.all"
                                 : type.attribute == "GFX"   ? "+gfx"
                                                             : "";
  return fmt::format("{}g.{}gb{}", *type.slices, type.gigabytes, added);
}

std::string type_key(std::string_view name) {
  name = trim(name);
  return std::string(name.substr(name.rfind(' ') + 1));
}

std::vector<ListedType> parse_creatable_types(std::string_view text) {
  std::vector<ListedType> types;
  for (const auto line : lines(text)) {
    if (types.size() == kMaxTypes) break;
    auto type = parse_listed(line);
    if (!type) continue;
    const bool known = std::any_of(types.begin(), types.end(),
                                   [&](const ListedType& other) { return other.id == type->id; });
    if (!known) types.push_back(*std::move(type));
  }
  return types;
}

TypeDescription parse_description(std::string_view text) {
  TypeDescription description;
  for (auto part : split(text, ',')) {
    part = trim(part);
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    const auto key = part.substr(0, equals);
    auto value = part.substr(equals + 1);
    if (key == "framebuffer" && value.ends_with('M')) {
      value.remove_suffix(1);
      description.framebuffer_mib = small_number(value, kMaxGigabytes * 1024).value_or(0);
    } else if (key == "max_instance") {
      description.max_instances = small_number(value, 1024).value_or(0);
    }
  }
  return description;
}

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool hex = is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (dash ? c != '-' : !hex) return false;
  }
  return true;
}

}  // namespace gantry::vgpu
