// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/quantity.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

namespace gantry::podspec {
namespace {

constexpr std::size_t kLengthLimit = 64;
constexpr std::uint64_t kMaxValue = std::numeric_limits<std::int64_t>::max();

// The digits without the decimal point, and the powers by which they are multiplied.
struct Decimal {
  std::string digits;
  int tens = 0;
  int twos = 0;
};

Error no_quantity(std::string_view text) {
  return {Errc::Invalid,
          fmt::format("\"{}\" is not a quantity", printable(text.substr(0, kLengthLimit)))};
}

// "e3", "E-2"; nullopt if it is not an exponent.
std::optional<int> exponent(std::string_view suffix) {
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  suffix.remove_prefix(1);
  const bool minus = suffix[0] == '-';
  if (minus || suffix[0] == '+') suffix.remove_prefix(1);
  if (suffix.empty() || suffix.size() > 3) return std::nullopt;
  int value = 0;
  for (const char c : suffix) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return minus ? -value : value;
}

bool apply_suffix(std::string_view suffix, Decimal& number) {
  constexpr std::string_view kBinary = "KMGTPE";
  constexpr std::string_view kDecimal = "num kMGTPE";  // from 10^-9 in steps of 10^3
  if (suffix.empty()) return true;
  if (suffix.size() == 2 && suffix[1] == 'i') {
    const auto at = kBinary.find(suffix[0]);
    if (at == std::string_view::npos) return false;
    number.twos = static_cast<int>(at + 1) * 10;
    return true;
  }
  if (suffix.size() == 1 && suffix[0] != ' ') {
    const auto at = kDecimal.find(suffix[0]);
    if (at == std::string_view::npos) return false;
    number.tens += static_cast<int>(at) * 3 - 9;
    return true;
  }
  const auto tens = exponent(suffix);
  number.tens += tens.value_or(0);
  return tens.has_value();
}

std::optional<Decimal> decimal_from(std::string_view text) {
  Decimal number;
  std::size_t at = 0;
  bool point = false;
  bool any = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (point) --number.tens;
    if (!number.digits.empty() || text[at] != '0') number.digits.push_back(text[at]);
  }
  if (!any || !apply_suffix(text.substr(at), number)) return std::nullopt;
  while (!number.digits.empty() && number.digits.back() == '0') {
    number.digits.pop_back();
    ++number.tens;
  }
  if (number.digits.empty()) number.tens = number.twos = 0;
  return number;
}

std::optional<std::uint64_t> times(std::uint64_t value, std::uint64_t factor) {
  if (factor != 0 && value > kMaxValue / factor) return std::nullopt;
  return value * factor;
}

std::optional<std::uint64_t> number_from(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    const auto shifted = times(value, 10);
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (!shifted || *shifted > kMaxValue - digit) return std::nullopt;
    value = *shifted + digit;
  }
  return value;
}

// For a number with tens < 0: the part before the point, and the thousandths after it.
std::optional<Quantity> split_at_point(const Decimal& number) {
  const std::size_t after = static_cast<std::size_t>(-number.tens);
  const std::size_t size = number.digits.size();
  const auto value = number_from(number.digits.substr(0, size > after ? size - after : 0));
  if (!value) return std::nullopt;
  std::string fraction(after > size ? after - size : 0, '0');
  fraction += number.digits.substr(size > after ? size - after : 0);
  fraction.resize(3, '0');
  const auto milli = number_from(fraction).value_or(0);
  return Quantity{.value = *value, .milli = std::max(1U, static_cast<std::uint32_t>(milli))};
}

// Ki and similar suffixes, also after a fraction: 1.5Ki is 1536.
std::optional<Quantity> binary_quantity(const Decimal& number) {
  __extension__ using Wide = unsigned __int128;  // 2^63 times 2^60 at most
  const auto digits = number_from(number.digits);
  if (!digits) return std::nullopt;
  Wide value = Wide{*digits} << number.twos;
  bool whole = true;
  for (int tens = number.tens; tens < 0; ++tens) {
    whole = whole && value % 10 == 0;
    value /= 10;
  }
  for (int tens = number.tens; tens > 0 && value <= kMaxValue; --tens) value *= 10;
  if (value > kMaxValue) return std::nullopt;
  return Quantity{
      .value = static_cast<std::uint64_t>(value), .milli = whole ? 0U : 1U, .binary = true};
}

std::optional<Quantity> exact(const Decimal& number) {
  if (number.twos > 0) return binary_quantity(number);
  if (number.tens < 0) return split_at_point(number);
  auto value = number_from(number.digits);
  for (int tens = number.tens; value && tens > 0; --tens) value = times(*value, 10);
  if (!value) return std::nullopt;
  return Quantity{.value = *value};
}

}  // namespace

Result<Quantity> parse_quantity(std::string_view text) {
  if (text.empty() || text.size() > kLengthLimit) return no_quantity(text);
  const bool minus = text[0] == '-';
  if (minus || text[0] == '+') text.remove_prefix(1);
  const auto number = decimal_from(text);
  if (!number) return no_quantity(text);
  if (minus && !number->digits.empty())
    return Error(Errc::Invalid, fmt::format("-{} is below zero", printable(text)));
  const auto quantity = exact(*number);
  if (!quantity)
    return Error(Errc::Invalid, fmt::format("{} is larger than 2^63 - 1", printable(text)));
  return *quantity;
}

Result<Quantity> read_quantity(const json::Value& value) {
  if (value.is(json::Kind::Number)) return parse_quantity(value.raw());
  const auto text = value.string();
  if (!text)
    return Error(Errc::Invalid, fmt::format("{} is not a quantity", json::to_string(value.kind())));
  return parse_quantity(*text);
}

}  // namespace gantry::podspec
