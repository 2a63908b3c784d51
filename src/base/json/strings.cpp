// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/json/strings_internal.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace gantry::json {
namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;

bool has_escapes(std::string_view literal) {
  return literal.find('\\') != std::string_view::npos;
}

std::string_view inside(std::string_view literal) {
  return literal.substr(1, literal.size() - 2);
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | (code >> 6U));
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | (code >> 12U));
    put(0x80U | ((code >> 6U) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | (code >> 18U));
    put(0x80U | ((code >> 12U) & 0x3FU));
    put(0x80U | ((code >> 6U) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

std::optional<std::uint32_t> four_digits(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  const auto value = parse_u64(text.substr(0, 4), 16);
  if (!value) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

// Decodes the part after "\u": its code point, and the number of characters of `rest` that it used.
std::pair<std::uint32_t, std::size_t> code_point(std::string_view rest) {
  const auto first = four_digits(rest).value_or(kReplacement);
  if (first < 0xD800 || first > 0xDFFF) return {first, 4};
  if (first < 0xDC00 && rest.substr(4, 2) == "\\u") {
    const auto second = four_digits(rest.substr(6)).value_or(0);
    if (second >= 0xDC00 && second <= 0xDFFF) {
      return {0x10000 + ((first - 0xD800) << 10U) + (second - 0xDC00), 10};
    }
  }
  return {kReplacement, 4};
}

char plain_escape(char c) {
  switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return c;  // quote, slash, backslash
  }
}

}  // namespace

std::optional<std::size_t> string_length(std::string_view text) {
  std::size_t at = 1;  // after the quote
  while (at < text.size()) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c == '"') return at + 1;
    if (c < 0x20) return std::nullopt;
    ++at;
    if (c != '\\') continue;
    if (at >= text.size()) return std::nullopt;
    const char escape = text[at++];
    if (escape == 'u') {
      if (!four_digits(text.substr(at))) return std::nullopt;
      at += 4;
    } else if (std::string_view("\"\\/bfnrt").find(escape) == std::string_view::npos) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::string unquote(std::string_view literal) {
  const auto text = inside(literal);
  if (!has_escapes(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      out.push_back(text[at]);
      continue;
    }
    const char escape = text[++at];
    if (escape != 'u') {
      out.push_back(plain_escape(escape));
      continue;
    }
    const auto [code, taken] = code_point(text.substr(at + 1));
    append_utf8(out, code);
    at += taken;
  }
  return out;
}

int compare_strings(std::string_view literal, std::string_view other) {
  if (!has_escapes(literal) && !has_escapes(other)) return literal.compare(other);
  return unquote(literal).compare(unquote(other));
}

bool means(std::string_view literal, std::string_view text) {
  if (!has_escapes(literal)) return inside(literal) == text;
  return unquote(literal) == text;
}

std::string quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out.push_back('"');
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0xFFU;
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else if (c == '\xC2' && next < 0xA0) {  // U+0080 to U+009F: some terminals obey them
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

}  // namespace gantry::json
