// SPDX-License-Identifier: Apache-2.0
#include "kube/base64_internal.hpp"

#include <cstdint>

namespace gantry::kube {
namespace {

int value_of(char letter) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto at = kAlphabet.find(letter);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

Result<std::string> from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  bool ended = false;
  for (const char letter : text) {
    if (letter == '\n' || letter == '\r' || letter == ' ') continue;
    ended = ended || letter == '=';
    if (letter == '=') continue;
    const int value = value_of(letter);
    if (value < 0 || ended) return Error(Errc::Invalid, "not base64");
    bits = bits << 6U | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> static_cast<unsigned>(count) & 0xffU));
  }
  return bytes;
}

}  // namespace gantry::kube
