// SPDX-License-Identifier: Apache-2.0
#include "doctor/archive/mask.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_alnum(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool all_hex(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_hex);
}

constexpr std::size_t kUuidBytes = 36;

// 8-4-4-4-12 hexadecimal digits at the beginning of the text.
bool starts_with_uuid(std::string_view text) {
  if (text.size() < kUuidBytes) return false;
  for (std::size_t i = 0; i < kUuidBytes; ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !is_hex(text[i])) return false;
  }
  return text.size() == kUuidBytes || !is_alnum(text[kUuidBytes]);
}

// Addresses that mean the same on every machine stay.
bool is_ipv4(std::string_view text) {
  const auto parts = split(text, '.');
  if (parts.size() != 4) return false;
  const bool numbers = std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    return !part.empty() && part.size() <= 3 && std::all_of(part.begin(), part.end(), is_digit) &&
           parse_u64(part).value_or(256) < 256;
  });
  return numbers && parts[0] != "127" && text != "0.0.0.0" && text != "255.255.255.255";
}

bool is_mac(std::string_view text) {
  const auto parts = split(text, ':');
  return parts.size() == 6 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           return part.size() == 2 && all_hex(part);
         });
}

// Eight groups, or fewer with "::". A PCI address has a dot and a time has neither.
bool is_ipv6(std::string_view text) {
  if (text == "::" || text == "::1") return false;
  const auto parts = split(text, ':');
  const bool gap = contains(text, "::");
  if (parts.size() < 3 || parts.size() > 8 || (!gap && parts.size() != 8)) return false;
  const auto empty = std::count(parts.begin(), parts.end(), std::string_view());
  if (static_cast<std::ptrdiff_t>(parts.size()) - empty < 2) return false;  // "::3" of a replica
  return std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    return part.size() <= 4 && (part.empty() || all_hex(part));
  });
}

bool is_in_word(char c) {
  return is_alnum(c) || c == '-' || c == '_';
}
bool is_in_host_name(char c) {
  return is_in_word(c) || c == '.';
}
bool is_in_address(char c) {
  return is_hex(c) || c == '.' || c == ':';
}

std::string_view take_while(std::string_view text, bool (*belongs)(char)) {
  const auto end = std::find_if_not(text.begin(), text.end(), belongs);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

}  // namespace

void IdentityMask::add_word(std::string_view word, std::string_view replacement_prefix) {
  if (word.size() < 3 || words_.contains(word)) return;
  const auto number = ++counts_[std::string(replacement_prefix)];
  words_.emplace(word, fmt::format("{}-{}", replacement_prefix, number));
}

std::string IdentityMask::numbered(const std::string& key, std::string_view kind) {
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  const auto number = ++counts_[std::string(kind)];
  std::string text;
  if (kind == "uuid") {
    text = fmt::format("00000000-0000-0000-0000-{:012x}", number);
  } else if (kind == "ipv4") {
    text = fmt::format("192.0.2.{}", number);  // RFC 5737: for documentation
    if (number > 254) text = fmt::format("198.51.{}.{}", 100 + number / 256 % 100, number % 256);
  } else if (kind == "ipv6") {
    text = fmt::format("2001:db8::{:x}", number);  // RFC 3849
  } else if (kind == "mac") {
    text = fmt::format("02:00:00:00:{:02x}:{:02x}", number / 256 % 256, number % 256);
  } else {
    text = fmt::format("{}-{}", kind, number);
  }
  return known_.emplace(key, text).first->second;
}

// A run of characters that can be part of an address: hexadecimal digits, dots, colons.
std::string IdentityMask::mask_word(std::string_view word) {
  auto tail = word;
  while (!tail.empty() && (tail.back() == '.' || tail.back() == ':')) tail.remove_suffix(1);
  const auto rest = word.substr(tail.size());
  const auto key = to_lower(tail);
  if (is_mac(tail)) return numbered(key, "mac") + std::string(rest);
  if (is_ipv6(word)) return numbered(to_lower(word), "ipv6");
  if (is_ipv6(tail)) return numbered(key, "ipv6") + std::string(rest);
  const auto colon = tail.find(':');  // "10.0.0.1:6443"
  const auto address = tail.substr(0, colon);
  if (!is_ipv4(address)) return std::string(word);
  return numbered(std::string(address), "ipv4") + std::string(word.substr(address.size()));
}

std::size_t IdentityMask::mask_user(std::string_view text, std::string& out) {
  constexpr std::string_view kHome = "/home/";
  if (!text.starts_with(kHome)) return 0;
  const auto user = take_while(text.substr(kHome.size()), is_in_host_name);
  out += kHome;
  if (!user.empty()) out += numbered(fmt::format("/home/{}", user), "user");
  return kHome.size() + user.size();
}

std::size_t IdentityMask::mask_known_word(std::string_view text, std::string& out) {
  auto known = words_.find(take_while(text, is_in_host_name));
  if (known == words_.end()) known = words_.find(take_while(text, is_in_word));
  if (known == words_.end()) return 0;
  out += known->second;
  return known->first.size();
}

std::size_t IdentityMask::mask_address(std::string_view text, std::string& out) {
  const auto address = take_while(text, is_in_address);
  const bool whole = address.size() == text.size() || !is_in_word(text[address.size()]);
  if (address.size() < 3 || !whole) return 0;
  out += mask_word(address);
  return address.size();
}

std::string IdentityMask::apply(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool starts = out.empty() || (!is_in_word(out.back()) && out.back() != '.');
    const bool may_be_uuid = starts || out.back() == '-';  // "GPU-..."
    std::size_t done = 0;
    if (may_be_uuid && starts_with_uuid(text)) {
      out += numbered(to_lower(text.substr(0, kUuidBytes)), "uuid");
      done = kUuidBytes;
    }
    if (done == 0) done = mask_user(text, out);
    if (done == 0 && starts) done = mask_known_word(text, out);
    if (done == 0 && starts) done = mask_address(text, out);
    if (done == 0) {
      out += text.front();
      done = 1;
    }
    text.remove_prefix(done);
  }
  return out;
}

}  // namespace gantry::doctor
