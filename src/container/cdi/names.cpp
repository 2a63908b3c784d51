// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/names.hpp"

#include "container/cdi/characters_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::cdi {
namespace {

bool is_alnum(char c) {
  return is_letter(c) || is_digit(c);
}

enum class FirstCharacter : std::uint8_t { Letter, LetterOrDigit };

Status check(std::string_view name, std::string_view what, FirstCharacter first,
             std::string_view marks) {
  const auto wrong = [&](std::string_view why) {
    return Error(Errc::Invalid, fmt::format("{} \"{}\" {}", what, name, why));
  };
  if (name.empty()) return wrong("is empty");
  if (first == FirstCharacter::Letter && !is_letter(name.front()))
    return wrong("must start with a letter");
  // The CDI library of containerd, docker and podman (up to 1.1.0) crashes on a single letter.
  if (first == FirstCharacter::Letter && name.size() < 2)
    return wrong("must have at least two letters");
  if (!is_alnum(name.front())) return wrong("must start with a letter or digit");
  if (!is_alnum(name.back())) return wrong("must end with a letter or digit");
  const auto bad = std::find_if(name.begin(), name.end(), [&](char c) {
    return !is_alnum(c) && marks.find(c) == std::string_view::npos;
  });
  if (bad != name.end())
    return wrong(fmt::format("may contain only letters, digits and {}", marks));
  return {};
}

}  // namespace

Status check_kind(std::string_view kind) {
  const auto slash = kind.find('/');
  if (slash == std::string_view::npos) {
    return Error(Errc::Invalid,
                 fmt::format("kind \"{}\" must be VENDOR/CLASS, such as nvidia.com/gpu", kind));
  }
  GANTRY_CHECK(check(kind.substr(0, slash), "vendor", FirstCharacter::Letter, "_-."));
  return check(kind.substr(slash + 1), "class", FirstCharacter::Letter, "_-.");
}

Status check_device_name(std::string_view name) {
  return check(name, "device name", FirstCharacter::LetterOrDigit, "_-.:");
}

Result<QualifiedName> parse_qualified(std::string_view name) {
  const auto equals = name.find('=');
  if (equals == std::string_view::npos) {
    return Error(
        Errc::Invalid,
        fmt::format("\"{}\" is not a CDI name: VENDOR/CLASS=DEVICE, such as nvidia.com/gpu=0",
                    name));
  }
  QualifiedName parts{std::string(name.substr(0, equals)), std::string(name.substr(equals + 1))};
  GANTRY_CHECK(check_kind(parts.kind).in(fmt::format("CDI name \"{}\"", name)));
  GANTRY_CHECK(check_device_name(parts.device).in(fmt::format("CDI name \"{}\"", name)));
  return parts;
}

bool is_qualified(std::string_view name) {
  return parse_qualified(name).ok();
}

}  // namespace gantry::cdi
