// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/os_release.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::driver_package {
namespace {

bool is_variable(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || is_digit(c); });
}

// The value as a shell assigns it, without its expansions: os-release(5) forbids them. nullopt if a
// quote is not closed, or something follows it.
std::optional<std::string> unquote(std::string_view text) {
  std::string value;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'') {
      if (++i == text.size()) return std::nullopt;
      value += text[i];
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      return std::nullopt;
    } else {
      value += c;
    }
  }
  if (quote != 0) return std::nullopt;
  return value;
}

// ID and VERSION_ID become parts of URLs and commands.
bool is_plain_word(std::string_view text) {
  return text.size() <= 64 && std::ranges::all_of(text, [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
                  c == '_' || c == '-';
         });
}

void assign(OsRelease& release, std::string_view name, const std::string& value) {
  if (name == "ID" && is_plain_word(value) && !value.empty()) release.id = value;
  if (name == "VERSION_ID" && is_plain_word(value)) release.version_id = value;
  if (name == "VERSION_CODENAME" && is_plain_word(value)) release.codename = value;
  if (name == "PRETTY_NAME") release.pretty_name = printable(value);
  if (name != "ID_LIKE") return;
  release.id_like.clear();
  for (const auto word : split(value, ' '))
    if (!word.empty() && is_plain_word(word)) release.id_like.emplace_back(word);
}

}  // namespace

bool is_like(const OsRelease& release, std::string_view id) {
  return release.id == id || std::ranges::find(release.id_like, id) != release.id_like.end();
}

Result<OsRelease> parse_os_release(std::string_view text) {
  if (text.size() > kOsReleaseLimit)
    return Error(Errc::TooLarge, fmt::format("os-release has {} bytes", text.size()));
  OsRelease release;
  release.id = "linux";
  std::size_t number = 0;
  for (const auto raw : lines(text)) {
    ++number;
    const auto line = trim(raw);
    if (line.empty() || line.front() == '#') continue;
    const auto equals = line.find('=');
    const auto name = line.substr(0, equals);
    const auto value =
        equals == std::string_view::npos ? std::nullopt : unquote(line.substr(equals + 1));
    if (!is_variable(name) || !value)
      return Error(Errc::Invalid, fmt::format("os-release, line {}: `{}` is not NAME=VALUE", number,
                                              printable(line.substr(0, 80))));
    assign(release, name, *value);
  }
  return release;
}

Result<OsRelease> read_os_release(const sys::Host& host) {
  auto text = host.read("/etc/os-release", kOsReleaseLimit);
  if (!text.ok() && text.error().code() == Errc::NotFound)
    text = host.read("/usr/lib/os-release", kOsReleaseLimit);
  if (!text.ok()) return std::move(text).error().in("finding out which distribution this is");
  return parse_os_release(*text);
}

}  // namespace gantry::driver_package
