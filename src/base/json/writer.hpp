// SPDX-License-Identifier: Apache-2.0
// Writes JSON. Objects and arrays are closed by the end of their function, so the text is always
// well-formed:
//   json::Writer out;
//   out.object([&] {
//     out.member("name", pod.name);
//     out.array("gpus", pod.gpus, [&](const Gpu& gpu) { out.value(gpu.uuid); });
//   });
//   return out.text();
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gantry::json {

enum class Layout : std::uint8_t {
  Line,      // one line, no spaces
  Spaced,    // one line, a space after each comma and colon
  Indented,  // a line for each value, two spaces for each level
  Rows       // a line for each value of the outermost object or array, written as in Spaced
};

class Writer {
 public:
  explicit Writer(Layout layout = Layout::Line) : layout_(layout), inner_(layout) {}

  // Bytes that are not UTF-8 become U+FFFD.
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(std::nullptr_t /*null*/) { literal("null"); }
  template <class T>
  requires std::same_as<T, bool>
  void value(T truth) { literal(truth ? "true" : "false"); }
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) void value(T number) {
    if constexpr (std::is_signed_v<T>)
      signed_number(number);
    else
      unsigned_number(number);
  }
  void value(double number);  // the shortest text that reads back as the same number
  template <class T>
  void value(const std::optional<T>& maybe) {  // nullopt: null
    if (maybe)
      value(*maybe);
    else
      value(nullptr);
  }
  void raw(std::string_view json);  // JSON text, copied unchanged

  template <std::invocable Members>
  void object(Members&& members) {
    enclose('{', '}', inner_, std::forward<Members>(members));
  }
  template <std::ranges::input_range Map>
  void object(const Map& map) {  // pairs of a name and a value
    object([&] {
      for (const auto& [name, content] : map) member(name, content);
    });
  }
  template <std::invocable Elements>
  void array(Elements&& elements) {
    enclose('[', ']', inner_, std::forward<Elements>(elements));
  }
  // Calls `write` for each element. `write` writes one value.
  template <std::ranges::input_range Range, class Write>
  requires(!std::convertible_to<Range, std::string_view>) void array(const Range& range,
                                                                     Write&& write) {
    array([&] {
      for (const auto& element : range) std::invoke(write, element);
    });
  }
  template <std::ranges::input_range Range>
  requires(!std::convertible_to<Range, std::string_view>) void array(const Range& range) {
    array(range, [this](const auto& element) { this->value(element); });
  }
  // An array in Layout::Rows inside any other layout. An empty one takes two lines.
  template <std::ranges::input_range Range, class Write>
  void rows(const Range& range, Write&& write) {
    enclose('[', ']', Layout::Rows, [&] {
      for (const auto& element : range) std::invoke(write, element);
    });
  }

  // Inside object(): the name of the member whose value comes next.
  void key(std::string_view name);
  template <class T>
  void member(std::string_view name, const T& content) {
    key(name);
    value(content);
  }
  void raw_member(std::string_view name, std::string_view json) {
    key(name);
    raw(json);
  }
  template <class... Arguments>
  void object(std::string_view name, Arguments&&... arguments) {
    key(name);
    object(std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  void array(std::string_view name, Arguments&&... arguments) {
    key(name);
    array(std::forward<Arguments>(arguments)...);
  }
  template <class Range, class Write>
  void rows(std::string_view name, const Range& range, Write&& write) {
    key(name);
    rows(range, std::forward<Write>(write));
  }

  // The text written so far; complete after the outermost value.
  const std::string& text() const& { return text_; }
  std::string text() && { return std::move(text_); }

 private:
  template <class Content>
  void enclose(char opening, char closing, Layout layout, Content&& content) {
    const auto outer = layout_;
    const auto outer_inner = inner_;
    open(opening, layout);
    std::invoke(std::forward<Content>(content));
    close(closing);
    layout_ = outer;
    inner_ = outer_inner;
  }
  void open(char bracket, Layout layout);
  void close(char bracket);
  void separate();  // comma and line break before a value or a key
  void new_line();
  void literal(std::string_view json);
  void signed_number(std::int64_t number);
  void unsigned_number(std::uint64_t number);

  std::string text_;
  Layout layout_;  // of the object or array that is open
  Layout inner_;   // of those in it
  std::size_t depth_ = 0;
  bool empty_ = true;  // the object or array that is open has nothing in it
  bool after_key_ = false;
};

}  // namespace gantry::json
