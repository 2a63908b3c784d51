// SPDX-License-Identifier: Apache-2.0
#include "base/json/patch_internal.hpp"
#include "base/json/strings_internal.hpp"

namespace gantry::json {
namespace {

// The white space before the first item of a container.
std::string_view lead(const Document& document, Value container) {
  const auto first = container.node().first_child;
  if (first == 0) return {};
  const auto item = *container.begin();
  const auto begin = item.node().key_end != 0 ? item.node().key_begin : item.node().begin;
  const auto start = container.node().begin + 1;
  return std::string_view(document.text()).substr(start, begin - start);
}

void detect_indentation(const Document& document, Style& style) {
  const auto before = lead(document, document.root());
  const auto line = before.rfind('\n');
  if (line == std::string_view::npos) return;
  style.line_end = line > 0 && before[line - 1] == '\r' ? "\r\n" : "\n";
  style.unit = std::string(before.substr(line + 1));
}

// The first member shows what is between a key and its value.
void detect_colon(const Document& document, Style& style) {
  if (!document.root().is(Kind::Object) || document.root().size() == 0) return;
  const auto& first = (*document.root().begin()).node();
  style.colon = document.text().substr(first.key_end, first.begin - first.key_end);
}

}  // namespace

Style detect_style(const Document& document) {
  Style style{.line_end = {}, .unit = {}, .colon = {}, .comma = ","};
  detect_indentation(document, style);
  detect_colon(document, style);
  const bool empty = document.root().size() == 0;
  if (empty && document.text().size() > document.root().raw().size()) {
    style.line_end = "\n";  // a file with only {} and a line end: written by a person
    style.unit = "    ";
  }
  if (style.colon.empty()) style.colon = style.line_end.empty() ? ":" : ": ";
  if (style.colon.size() > 1) style.comma = ", ";
  return style;
}

void write_value(std::string& out, Value value, const Style& style, const std::string& indentation,
                 bool flat) {
  const bool object = value.is(Kind::Object);
  if ((!object && !value.is(Kind::Array)) || value.size() == 0) {
    out += value.is(Kind::Array) ? "[]" : object ? "{}" : std::string(value.raw());
    return;
  }
  const bool on_one_line = flat || style.line_end.empty();
  const auto deeper = indentation + style.unit;
  out += object ? '{' : '[';
  bool first = true;
  for (const auto item : value) {
    if (on_one_line) {
      if (!first) out += style.comma;
    } else {
      out += (first ? "" : ",") + style.line_end + deeper;
    }
    first = false;
    if (object) out += quote(item.key()) + style.colon;
    write_value(out, item, style, deeper, on_one_line);
  }
  if (!on_one_line) out += style.line_end + indentation;
  out += object ? '}' : ']';
}

}  // namespace gantry::json
