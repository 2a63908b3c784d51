// SPDX-License-Identifier: Apache-2.0
#include "base/json/writer.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gantry::json {
namespace {

// Needs no quoting: most texts are names and numbers.
bool is_plain(char c) {
  return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

}  // namespace

void Writer::value(std::string_view text) {
  separate();
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    text_ += '"';
    text_ += text;
    text_ += '"';
  } else {
    text_ += is_utf8(text) ? quote(text) : quote(replace_invalid_utf8(text));
  }
}

void Writer::value(double number) {
  separate();
  fmt::format_to(std::back_inserter(text_), "{}", number);
}

void Writer::raw(std::string_view json) {
  literal(json);
}

void Writer::key(std::string_view name) {
  value(name);
  text_ += layout_ == Layout::Line ? ":" : ": ";
  after_key_ = true;
}

void Writer::open(char bracket, Layout layout) {
  separate();
  text_ += bracket;
  ++depth_;
  empty_ = true;
  layout_ = layout;
  inner_ = layout == Layout::Rows ? Layout::Spaced : layout;
}

void Writer::close(char bracket) {
  --depth_;
  if (layout_ == Layout::Rows || (layout_ == Layout::Indented && !empty_)) new_line();
  text_ += bracket;
  empty_ = false;
}

void Writer::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ == 0) return;
  if (!empty_) text_ += layout_ == Layout::Spaced ? ", " : ",";
  empty_ = false;
  if (layout_ == Layout::Indented || layout_ == Layout::Rows) new_line();
}

void Writer::new_line() {
  text_ += '\n';
  text_.append(2 * depth_, ' ');
}

void Writer::literal(std::string_view json) {
  separate();
  text_ += json;
}

void Writer::signed_number(std::int64_t number) {
  literal(fmt::format_int(number).c_str());
}

void Writer::unsigned_number(std::uint64_t number) {
  literal(fmt::format_int(number).c_str());
}

}  // namespace gantry::json
