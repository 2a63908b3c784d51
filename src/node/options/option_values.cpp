// SPDX-License-Identifier: Apache-2.0
// Converts values of options from text and back, by the type of their field.
#include "base/core/nearest.hpp"
#include "base/core/text.hpp"
#include "node/options/options_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>

namespace gantry::options {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxValueBytes = 4096;
constexpr std::size_t kMaxListItems = 256;

template <class T>
struct ItemOf {
  using Type = T;
};
template <class T>
struct ItemOf<std::vector<T>> {
  using Type = T;
};

template <class T>
constexpr bool kIsList = !std::is_same_v<T, typename ItemOf<T>::Type>;

template <class E>
std::string listed() {
  std::string text;
  for (std::size_t i = 0; i < model::kEnumNames<E>.size(); ++i) {
    const bool last = i + 1 == model::kEnumNames<E>.size();
    text += fmt::format("{}{}", i == 0 ? "" : (last ? " or " : ", "), model::kEnumNames<E>[i]);
  }
  return text;
}

Error wrong(std::string_view text, std::string_view wanted) {
  return {Errc::Invalid, fmt::format("`{}` is not {}", text, wanted)};
}

// Like Go's ParseBool.
Status parse(std::string_view text, bool& value) {
  constexpr std::array<std::string_view, 6> kTrue{"1", "t", "T", "TRUE", "true", "True"};
  constexpr std::array<std::string_view, 6> kFalse{"0", "f", "F", "FALSE", "false", "False"};
  if (std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end()) {
    value = true;
  } else if (std::find(kFalse.begin(), kFalse.end(), text) != kFalse.end()) {
    value = false;
  } else {
    return wrong(text, "true or false");
  }
  return {};
}

Status parse(std::string_view text, std::string& value) {
  if (text.find('\0') != std::string_view::npos) return wrong("...\\0...", "a text");
  value = std::string(text);
  return {};
}

Status parse(std::string_view text, std::int64_t& value) {
  const auto number = parse_i64(text);
  if (!number) return wrong(text, "a number");
  value = *number;
  return {};
}

Status parse(std::string_view text, double& value) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number > 0) || number > 1e9) {
    return wrong(text, "a positive number");
  }
  value = number;
  return {};
}

struct Unit {
  std::string_view name;
  double in_milliseconds;
};
constexpr std::array kUnits{Unit{"ns", 1e-6}, Unit{"us", 1e-3},    Unit{"ms", 1},
                            Unit{"s", 1e3},   Unit{"m", 60'000.0}, Unit{"h", 3'600'000.0}};

// "60s", "1m30s", "1.5h": Go's durations, without signs. A number without a unit would be
// nanoseconds in Go, which is surely a mistake, so it is refused.
Status parse(std::string_view text, milliseconds& value) {
  if (text == "infinite") {
    value = kInfinite;
    return {};
  }
  const auto bad = wrong(text, "a duration such as 60s or 1m30s, or `infinite`");
  if (text == "0") {
    value = milliseconds(0);
    return {};
  }
  if (text.empty()) return bad;
  double total = 0;
  while (!text.empty()) {
    const auto digits = std::min(text.find_first_not_of("0123456789."), text.size());
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number);
    if (digits == 0 || error != std::errc() || end != text.data() + digits) return bad;
    text.remove_prefix(digits);
    const auto letters = text.substr(0, std::min(text.find_first_of("0123456789."), text.size()));
    const auto* unit = std::find_if(kUnits.begin(), kUnits.end(),
                                    [&](const Unit& u) { return u.name == letters; });
    if (unit == kUnits.end()) return bad;
    total += number * unit->in_milliseconds;
    if (!(total < 1e15)) return bad;
    text.remove_prefix(letters.size());
  }
  value = milliseconds(static_cast<std::int64_t>(total));
  return {};
}

template <class E>
requires std::is_enum_v<E> Status parse(std::string_view text, E& value) {
  const auto word = model::parse_enum<E>(text);
  if (!word) return wrong(text, listed<E>());
  value = *word;
  return {};
}

template <class T>
Status add_item(std::string_view text, std::vector<T>& list) {
  if (list.size() >= kMaxListItems) return wrong(text, "accepted: the list already has 256 items");
  T item{};
  GANTRY_CHECK(parse(trim(text), item));
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(std::move(item));
  return {};
}

template <class T>
Status parse(std::string_view text, std::vector<T>& value) {
  std::vector<T> list;
  for (const auto piece : split(text, ',')) {
    if (!trim(piece).empty()) GANTRY_CHECK(add_item(piece, list));
  }
  value = std::move(list);
  return {};
}

std::string show(bool value) {
  return value ? "true" : "false";
}
std::string show(const std::string& value) {
  return value;
}
std::string show(std::int64_t value) {
  return fmt::to_string(value);
}
std::string show(double value) {
  return fmt::format("{:g}", value);
}
template <class E>
requires std::is_enum_v<E> std::string show(E value) {
  return std::string(model::to_string(value));
}

std::string show(milliseconds value) {
  if (value == kInfinite) return "infinite";
  if (value.count() % 1000 == 0) return fmt::format("{}s", value.count() / 1000);
  return fmt::format("{}ms", value.count());
}

template <class T>
std::string show(const std::vector<T>& list) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ",") + show(item);
  return text;
}

template <class Then>
auto with_type(const Option& option, Then then) {
  return std::visit(
      [&](auto field) {
        using T = std::remove_reference_t<std::invoke_result_t<decltype(field), Options&>>;
        return then(std::type_identity<T>{});
      },
      option.field);
}

}  // namespace

Status set_value(const Option& option, std::string_view text, Options& options) {
  if (text.size() > kMaxValueBytes) return Error(Errc::Invalid, "the value is too long");
  return std::visit([&](auto field) { return parse(text, field(options)); }, option.field);
}

Status set_list(const Option& option, const std::vector<std::string>& items, Options& options) {
  return std::visit(
      [&](auto field) -> Status {
        using T = std::remove_reference_t<std::invoke_result_t<decltype(field), Options&>>;
        if constexpr (kIsList<T>) {
          T list;
          for (const auto& item : items) GANTRY_CHECK(add_item(item, list));
          field(options) = std::move(list);
          return {};
        } else {
          return Error(Errc::Invalid, "expected one value, found a list");
        }
      },
      option.field);
}

bool is_switch(const Option& option) {
  return with_type(option, []<class T>(std::type_identity<T>) { return std::is_same_v<T, bool>; });
}

bool is_text(const Option& option) {
  return with_type(option,
                   []<class T>(std::type_identity<T>) { return std::is_same_v<T, std::string>; });
}

bool is_list(const Option& option) {
  return with_type(option, []<class T>(std::type_identity<T>) { return kIsList<T>; });
}

std::string allowed_values(const Option& option) {
  return with_type(option, []<class T>(std::type_identity<T>) -> std::string {
    using Item = typename ItemOf<T>::Type;
    if constexpr (std::is_enum_v<Item>) {
      return listed<Item>();
    } else {
      return {};
    }
  });
}

std::string value_text(const Option& option, const Options& options) {
  auto copy = options;  // a field is accessed only through a non-const Options
  return std::visit([&](auto field) { return show(field(copy)); }, option.field);
}

std::vector<std::string_view> names_in(std::string_view joined) {
  return split(joined, '|');
}

std::string did_you_mean(std::string_view wrong_name, const std::vector<std::string>& known,
                         std::string_view before) {
  constexpr std::size_t kLongestName = 64;  // nothing is near to a longer name
  if (wrong_name.size() > kLongestName) return {};
  const auto nearest = nearest_name(wrong_name, known);
  return nearest.empty() ? std::string() : fmt::format("; did you mean `{}{}`?", before, nearest);
}

}  // namespace gantry::options
