// SPDX-License-Identifier: Apache-2.0
#include "base/core/base64.hpp"

#include <cstdint>

namespace gantry {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_value(char letter) {
  const auto at = kAlphabet.find(letter);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 3; ++j)
      three = three << 8U | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j)
      text.push_back(i + j <= bytes.size() ? kAlphabet[three >> (18 - 6 * j) & 63U] : '=');
  }
  return text;
}

Result<std::string> from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  bool ended = false;
  for (const char letter : text) {
    if (letter == '\n' || letter == '\r' || letter == ' ') continue;
    ended = ended || letter == '=';
    if (letter == '=') continue;
    const int value = base64_value(letter);
    if (value < 0 || ended) return Error(Errc::Invalid, "not base64");
    bits = bits << 6U | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> static_cast<unsigned>(count) & 0xffU));
  }
  return bytes;
}

}  // namespace gantry
