// SPDX-License-Identifier: Apache-2.0
// DER, as far as signatures and certificates need it: reads one element after another from bytes
// that may be hostile. Every length is checked; nothing is copied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::kernel_module {

struct DerElement {
  static constexpr std::uint8_t kInteger = 0x02, kObjectId = 0x06, kSequence = 0x30, kSet = 0x31;
  static constexpr std::uint8_t kContext0 = 0xa0, kContext1 = 0xa1, kImplicit0 = 0x80;
  std::uint8_t tag = 0;
  std::string_view content;
};

// Takes the first element from `rest`. nullopt, without a change, if it is damaged or longer than
// `rest`.
std::optional<DerElement> take_der(std::string_view& rest);
// The same; nullopt if the element has another tag.
std::optional<std::string_view> take_der(std::string_view& rest, std::uint8_t tag);

// A name as the kernel shows it in the descriptions of keys: "Debian Secure Boot CA", or
// "organisation: common name". "" if it has none of the parts that the kernel uses.
std::string describe_name(std::string_view name);

// An integer's bytes in hexadecimal, without the sign's zero byte in front; bounded.
std::string serial_text(std::string_view integer);
std::string hex_text(std::string_view bytes);

}  // namespace gantry::kernel_module
