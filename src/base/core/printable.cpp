// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

namespace gantry {
namespace {

std::string escaped(std::string_view text, char kept) {
  const bool utf8 = is_utf8(text);
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are C2 80 to C2 9F: some terminals treat them like ESC and a letter.
    const bool c1 =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    const bool control = (byte < 0x20 && text[i] != kept) || byte == 0x7F;
    if (utf8 && c1) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else if (control || (!utf8 && byte >= 0x80)) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) {
  return escaped(text, ' ');  // no control character is kept
}

std::string printable_lines(std::string_view text) {
  return escaped(text, '\n');
}

}  // namespace gantry
