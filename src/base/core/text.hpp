// SPDX-License-Identifier: Apache-2.0
// Small, bounded text handling for /proc and /sys files. Nothing here throws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry {

// ASCII, whatever the locale.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool all_digits(std::string_view text);  // false if it is empty

std::string_view trim(std::string_view text);

// The parts between separators; an empty text has no parts.
std::vector<std::string_view> split(std::string_view text, char separator);
std::vector<std::string_view> lines(std::string_view text);

// The whole text must be a number; base 0 accepts a 0x prefix. No sign, no white space.
std::optional<std::uint64_t> parse_u64(std::string_view text, int base = 10);
std::optional<std::int64_t> parse_i64(std::string_view text);

std::string to_lower(std::string_view text);

// Paths below a root: "/" is above every name, with or without a slash before it. A slash at the
// end counts, so "/a/" is the name "" in "/a".
std::string_view base_name(std::string_view path);         // "c" for "/a/b/c", "x" for "x"
std::string_view parent_directory(std::string_view path);  // "/a/b" for "/a/b/c", "/" for "x"
std::string join_path(std::string_view directory, std::string_view name);

bool contains(std::string_view text, std::string_view part);

bool is_utf8(std::string_view text);
std::size_t utf8_prefix(std::string_view text);  // bytes before the first that is not UTF-8
// Each byte that belongs to no valid character becomes U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

// 1536 -> "1.5 KiB"
std::string human_bytes(std::uint64_t bytes);

// Shell-style match with * and ?, on the whole text.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace gantry
