// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "install/kernel_module/der_internal.hpp"

#include <fmt/format.h>

namespace gantry::kernel_module {
namespace {

constexpr std::size_t kMaxLengthBytes = 4;
constexpr std::size_t kMaxNameParts = 64;
constexpr std::size_t kMaxNameText = 256;
constexpr std::size_t kMaxHexBytes = 64;

constexpr std::string_view kCommonName = "\x55\x04\x03";
constexpr std::string_view kOrganization = "\x55\x04\x0a";
constexpr std::string_view kEmail = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01";

struct NameParts {
  std::string_view common_name, organization, email;
};

// A name is a sequence of sets of pairs of an object id and a text.
NameParts parts_of(std::string_view name) {
  NameParts parts;
  for (std::size_t i = 0; i < kMaxNameParts && !name.empty(); ++i) {
    auto set = take_der(name, DerElement::kSet);
    if (!set) break;
    auto pair = take_der(*set, DerElement::kSequence);
    if (!pair) break;
    const auto id = take_der(*pair, DerElement::kObjectId);
    const auto text = take_der(*pair);
    if (!id || !text) break;
    const auto value = text->content.substr(0, kMaxNameText);
    if (*id == kCommonName) parts.common_name = value;
    if (*id == kOrganization) parts.organization = value;
    if (*id == kEmail) parts.email = value;
  }
  return parts;
}

// Where both begin with the same word, the kernel leaves the organisation out.
bool repeats_organization(const NameParts& parts) {
  constexpr std::size_t kSignificant = 7;
  const auto& [common_name, organization, email] = parts;
  if (common_name.starts_with(organization)) return true;
  return organization.size() >= kSignificant &&
         common_name.starts_with(organization.substr(0, kSignificant));
}

}  // namespace

std::optional<DerElement> take_der(std::string_view& rest) {
  if (rest.size() < 2) return std::nullopt;
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(rest[at]); };
  if ((byte(0) & 0x1fU) == 0x1f) return std::nullopt;  // a tag of several bytes
  std::size_t header = 2;
  std::size_t length = byte(1);
  if ((byte(1) & 0x80U) != 0) {
    const std::size_t count = byte(1) & 0x7fU;
    if (count == 0 || count > kMaxLengthBytes || rest.size() < 2 + count) return std::nullopt;
    length = 0;
    for (std::size_t i = 0; i < count; ++i) length = length << 8U | byte(2 + i);
    header += count;
  }
  if (length > rest.size() - header) return std::nullopt;
  const DerElement element{.tag = byte(0), .content = rest.substr(header, length)};
  rest.remove_prefix(header + length);
  return element;
}

std::optional<std::string_view> take_der(std::string_view& rest, std::uint8_t tag) {
  if (rest.empty() || static_cast<std::uint8_t>(rest.front()) != tag) return std::nullopt;
  const auto element = take_der(rest);
  if (!element) return std::nullopt;
  return element->content;
}

std::string describe_name(std::string_view name) {
  const auto parts = parts_of(name);
  if (parts.common_name.empty())
    return printable(parts.organization.empty() ? parts.email : parts.organization);
  if (parts.organization.empty() || repeats_organization(parts))
    return printable(parts.common_name);
  return printable(fmt::format("{}: {}", parts.organization, parts.common_name));
}

std::string hex_text(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes.substr(0, kMaxHexBytes))
    text += fmt::format("{:02x}", static_cast<std::uint8_t>(byte));
  return text;
}

std::string serial_text(std::string_view integer) {
  if (integer.size() > 1 && integer.front() == '\0') integer.remove_prefix(1);
  return hex_text(integer);
}

}  // namespace gantry::kernel_module
