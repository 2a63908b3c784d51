// SPDX-License-Identifier: Apache-2.0
// The signature behind a module: bytes of PKCS#7, `struct module_signature`, a line of text.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::kernel_module {

inline constexpr std::string_view kSignatureMark = "~Module signature appended~\n";
inline constexpr std::size_t kSignatureTrailer = 12 + kSignatureMark.size();

// The size of the signature before the trailer; nullopt if there is no signature. `end` is the end
// of a file of `file_size` bytes. Corrupt if the kernel would not even look at the signature.
struct SignatureTrailer {
  std::uint32_t size = 0;
  bool is_pkcs7 = false;
};
Result<std::optional<SignatureTrailer>> parse_signature_trailer(std::string_view end,
                                                                std::uint64_t file_size);

struct Signer {
  std::string name;    // the issuer of the signer's certificate, or the key's id
  std::string serial;  // of that certificate; "" with a key id
};
// Of a PKCS#7 message; nullopt if it has another form.
std::optional<Signer> parse_signer(std::string_view pkcs7);

}  // namespace gantry::kernel_module
